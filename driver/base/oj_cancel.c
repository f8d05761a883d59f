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
    int flag;              /* atomic */
    pthread_mutex_t mutex; /* guards all below; held while files are moved */
    void (*interrupt)(void *);
    void *interrupt_user;
    struct
    {
        int is_used, parent, folder;
        char name[512];
    } temporary[MAX_TEMPORARIES];
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* NULL: the flag of the process. */
static _Thread_local const int *flag_of_thread;

static void fill_signals(sigset_t *signals)
{
    struct sigaction hangup;
    sigemptyset(signals);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGTERM);
    /* nohup asks for hangups to be ignored, and blocked ones would not be. */
    if (sigaction(SIGHUP, NULL, &hangup) != 0 || hangup.sa_handler != SIG_IGN)
        sigaddset(signals, SIGHUP);
}

static void interrupt_statement(void)
{
    pthread_mutex_lock(&state.mutex);
    if (state.interrupt != NULL)
        state.interrupt(state.interrupt_user);
    pthread_mutex_unlock(&state.mutex);
}

/* Other threads may still put files there: then once more. */
static void remove_temporary(int parent, const char *name, int folder)
{
    for (int i = 0; i < MAX_ATTEMPTS; i++)
    {
        (void)oj_folder_clear(folder, NULL);
        if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno != ENOTEMPTY)
            return;
    }
}

static void *cancel_and_exit_on_signals(void *unused)
{
    const struct timespec patience = {PATIENCE_MS / 1000,
                                      PATIENCE_MS % 1000 * 1000000};
    sigset_t signals;
    int number;
    (void)unused;
    fill_signals(&signals);
    sigwait(&signals, &number);
    __atomic_store_n(&state.flag, 1, __ATOMIC_RELAXED);
    interrupt_statement();
    /* The orderly way out ends the process while this waits. */
    sigtimedwait(&signals, NULL, &patience);
    pthread_mutex_lock(&state.mutex);
    for (int i = 0; i < MAX_TEMPORARIES; i++)
    {
        if (state.temporary[i].is_used)
            remove_temporary(state.temporary[i].parent, state.temporary[i].name,
                             state.temporary[i].folder);
    }
    fprintf(stderr, "ERROR 1: interrupted\n");
    _exit(OJ_EXIT_INTERRUPTED);
}

oj_status oj_cancel_watch(struct oj_error *err)
{
    sigset_t signals;
    pthread_t thread;
    fill_signals(&signals);
    if (pthread_sigmask(SIG_BLOCK, &signals, NULL) != 0 ||
        pthread_create(&thread, NULL, cancel_and_exit_on_signals, NULL) != 0)
        return oj_fail(err, OJ_ERR_NOMEM, "could not start a thread");
    pthread_detach(thread);
    return OJ_OK;
}

const int *oj_cancel_use(const int *flag)
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

void oj_cancel_interrupt_by(void (*interrupt)(void *), void *user)
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

void oj_cancel_hold(void)
{
    pthread_mutex_lock(&state.mutex);
}

void oj_cancel_release(void)
{
    pthread_mutex_unlock(&state.mutex);
}
