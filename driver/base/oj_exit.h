/** Exit codes of the command. */
#ifndef OJ_EXIT_H
#define OJ_EXIT_H

enum oj_exit
{
    OJ_EXIT_COMPLETE = 0,
    OJ_EXIT_ERROR = 1,
    /** -validate found a difference; the output is kept nevertheless */
    OJ_EXIT_DIFFERENCE = 3,
    OJ_EXIT_INTERRUPTED = 130
};

#endif
