/** The text of --help, made from the table of options. */
#ifndef OJ_HELP_H
#define OJ_HELP_H

#ifdef __cplusplus
extern "C" {
#endif

/** Prints it on stdout. */
void oj_help_print(void);

#ifdef __cplusplus
}
#endif
#endif
