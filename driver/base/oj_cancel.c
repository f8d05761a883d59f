#include "oj_cancel.h"

#include "../../flatten/base/oj_folder.h"
#include "oj_exit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum
{
    PATIENCE_MS = 500,
    MAX_TEMPORARIES = 4,
    MAX_ATTEMPTS = 20
};

static struct
{
    int flag;   /* set to 1 by the first signal; atomic */
    int number; /* number of the first signal, 0 before it; atomic */
    /* 1 if the first signal only ends the input; atomic */
    int ends_input_first;
    int input_has_ended; /* 1 once a signal has ended the input; atomic */
    /* guards the members below; also held while the output is moved into
     * place */
    pthread_mutex_t mutex;
    void (*interrupt)(void *);
    void *interrupt_user;
    struct
    {
        int is_used, parent, folder;
        char name[512];
    } temporary[MAX_TEMPORARIES];
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* The flag that a thread has set by oj_cancel_use_flag(), or NULL if the thread
 * uses the flag of the process. */
static _Thread_local const int *flag_of_thread;

static int is_signal_ignored(int number)
{
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 &&
           action.sa_handler == SIG_IGN;
}

static void fill_signal_set(sigset_t *signals)
{
    sigemptyset(signals);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGTERM);
    /* Leaves out SIGHUP and SIGXCPU if they are ignored (nohup): sigwait()
     * would return a blocked signal although it is ignored. */
    if (!is_signal_ignored(SIGHUP))
        sigaddset(signals, SIGHUP);
    if (!is_signal_ignored(SIGXCPU))
        sigaddset(signals, SIGXCPU);
}

/* Records a signal and sets the flag. Returns 1 if it is the first signal.
 * Async-signal-safe. */
static int record_signal(int number)
{
    int none = 0;
    __atomic_store_n(&state.flag, 1, __ATOMIC_RELAXED);
    return __atomic_compare_exchange_n(&state.number, &none, number, 0,
                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Handler of SIGPIPE and SIGXFSZ: cancels the run. It runs on the thread whose
 * write() fails, before write() returns. The SIGTERM that it sends wakes the
 * thread that waits for signals; only the first signal sends it, because that
 * thread ends the process at a second one. */
static void cancel_on_failed_write(int number)
{
    int before = errno;
    if (record_signal(number))
        kill(getpid(), SIGTERM);
    errno = before;
}

static int install_failed_write_handlers(void)
{
    static const int numbers[] = {SIGPIPE, SIGXFSZ};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = cancel_on_failed_write;
    action.sa_flags = SA_RESTART;
    for (int i = 0; i < 2; i++)
    {
        if (!is_signal_ignored(numbers[i]) &&
            sigaction(numbers[i], &action, NULL) != 0)
            return 0;
    }
    return 1;
}

const char *oj_cancel_message(void)
{
    switch (__atomic_load_n(&state.number, __ATOMIC_RELAXED))
    {
        case SIGPIPE:
            return "interrupted: the program that reads the output has ended";
        case SIGXFSZ:
            return "interrupted: a file would become larger than the limit of "
                   "the shell allows (ulimit -f)";
        case SIGXCPU:
            return "interrupted: the processor time that the limit of the "
                   "shell allows is used up (ulimit -t)";
        default:
            return "interrupted";
    }
}

static void interrupt_sql_statement(void)
{
    pthread_mutex_lock(&state.mutex);
    if (state.interrupt != NULL)
        state.interrupt(state.interrupt_user);
    pthread_mutex_unlock(&state.mutex);
}

/* Removes a temporary folder. parent and folder are descriptors. Tries
 * MAX_ATTEMPTS times, because other threads may still create files in the
 * folder. */
static void remove_temporary_folder(int parent, const char *name, int folder)
{
    for (int i = 0; i < MAX_ATTEMPTS; i++)
    {
        (void)oj_folder_clear(folder, NULL);
        if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno != ENOTEMPTY)
            return;
    }
}

void oj_cancel_end_input_first(void)
{
    __atomic_store_n(&state.ends_input_first, 1, __ATOMIC_RELAXED);
}

int oj_cancel_input_has_ended(void)
{
    return __atomic_load_n(&state.input_has_ended, __ATOMIC_RELAXED);
}

/* Waits until a signal cancels the run and returns its number. If
 * state.ends_input_first is set, the first SIGINT, SIGTERM or SIGHUP only ends
 * the input, unless a failed write has set the flag before. */
static int wait_for_cancelling_signal(const sigset_t *signals)
{
    int number;
    sigwait(signals, &number);
    while (__atomic_load_n(&state.ends_input_first, __ATOMIC_RELAXED) &&
           !oj_cancel_input_has_ended() && number != SIGXCPU &&
           !__atomic_load_n(&state.flag, __ATOMIC_RELAXED))
    {
        __atomic_store_n(&state.input_has_ended, 1, __ATOMIC_RELAXED);
        sigwait(signals, &number);
    }
    return number;
}

static void *cancel_and_exit_on_signals(void *unused)
{
    const struct timespec patience = {PATIENCE_MS / 1000,
                                      PATIENCE_MS % 1000 * 1000000};
    sigset_t signals;
    int number;
    (void)unused;
    fill_signal_set(&signals);
    number = wait_for_cancelling_signal(&signals);
    (void)record_signal(number);
    interrupt_sql_statement();
    /* Waits for a second signal. Meanwhile the main thread normally cleans up
     * and ends the process. */
    sigtimedwait(&signals, NULL, &patience);
    pthread_mutex_lock(&state.mutex);
    for (int i = 0; i < MAX_TEMPORARIES; i++)
    {
        if (state.temporary[i].is_used)
            remove_temporary_folder(state.temporary[i].parent,
                                    state.temporary[i].name,
                                    state.temporary[i].folder);
    }
    fprintf(stderr, "ERROR 1: %s\n", oj_cancel_message());
    _exit(OJ_EXIT_INTERRUPTED);
}

oj_status oj_cancel_watch_signals(struct oj_error *err)
{
    sigset_t signals;
    pthread_t thread;
    fill_signal_set(&signals);
    if (!install_failed_write_handlers() ||
        pthread_sigmask(SIG_BLOCK, &signals, NULL) != 0 ||
        pthread_create(&thread, NULL, cancel_and_exit_on_signals, NULL) != 0)
        return oj_fail(err, OJ_ERR_NOMEM,
                       "the system could not start a thread: it is out of "
                       "memory or of threads (ulimit -u); end other programs");
    pthread_detach(thread);
    return OJ_OK;
}

const int *oj_cancel_use_flag(const int *flag)
{
    const int *before = flag_of_thread;
    flag_of_thread = flag;
    return before;
}

const int *oj_cancel_flag(void)
{
    return flag_of_thread != NULL ? flag_of_thread : &state.flag;
}

int oj_is_cancelled(void)
{
    return __atomic_load_n(oj_cancel_flag(), __ATOMIC_RELAXED) != 0;
}

oj_status oj_cancel_check(struct oj_error *err)
{
    return oj_check_cancel(oj_cancel_flag(), err);
}

void oj_cancel_set_interrupt_callback(void (*interrupt)(void *), void *user)
{
    pthread_mutex_lock(&state.mutex);
    state.interrupt = interrupt;
    state.interrupt_user = user;
    pthread_mutex_unlock(&state.mutex);
}

void oj_cancel_add_temporary(int parent, const char *name, int folder)
{
    pthread_mutex_lock(&state.mutex);
    for (int i = 0; i < MAX_TEMPORARIES; i++)
    {
        if (state.temporary[i].is_used)
            continue;
        state.temporary[i].is_used = 1;
        state.temporary[i].parent = parent;
        state.temporary[i].folder = folder;
        snprintf(state.temporary[i].name, sizeof state.temporary[i].name, "%s",
                 name);
        break;
    }
    pthread_mutex_unlock(&state.mutex);
}

void oj_cancel_drop_temporary(int folder)
{
    pthread_mutex_lock(&state.mutex);
    for (int i = 0; i < MAX_TEMPORARIES; i++)
    {
        if (state.temporary[i].is_used && state.temporary[i].folder == folder)
            state.temporary[i].is_used = 0;
    }
    pthread_mutex_unlock(&state.mutex);
}

void oj_cancel_defer_signals(void)
{
    pthread_mutex_lock(&state.mutex);
}

void oj_cancel_accept_signals(void)
{
    pthread_mutex_unlock(&state.mutex);
}
