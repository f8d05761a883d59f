/** What the command's exit code says. */
#ifndef OJ_EXIT_H
#define OJ_EXIT_H

enum oj_exit
{
    OJ_EXIT_COMPLETE = 0,
    OJ_EXIT_ERROR = 1,
    OJ_EXIT_DIFFERENCE = 3, /**< -validate found one; the output stays */
    OJ_EXIT_INTERRUPTED = 130
};

#endif
