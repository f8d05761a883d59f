/** The text of --help, made from the table of options. */
#ifndef OJ_HELP_H
#define OJ_HELP_H

/** Prints it on stdout. */
void oj_help_print(void);

#endif
