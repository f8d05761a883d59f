/** Help of the command on stdout: --help, man page, devices, completion. */
#ifndef OJ_HELP_H
#define OJ_HELP_H

/** Prints --help from the tables of options, joins and backends. */
void oj_help_print(void);

/** Prints what `ogrjoin` alone prints: purpose, usage, and where the rest is.
 */
void oj_help_print_usage(void);

/** Prints the joins and options with the word in their name or section, those
 *  of the join and those with the argument of this name; if there are none, the
 *  options with the word in their help. Dashes before it are ignored. Returns 0
 *  when nothing matches. */
int oj_help_print_topic(const char *word);

/** Prints the man page from its template (ogrjoin.1.in) and the tables. 0: the
 *  template cannot be read, or describes an option that does not exist. */
int oj_help_print_man(const char *template);

/** Prints the usable GPUs, or the reason why there is none. */
void oj_help_print_devices(void);

/** Prints the words that can follow the word `before`, one per line, for
 *  completion.  For other programs: after "--parameters", prints the parameters
 *  of all joins, with name, arguments, joins and help separated by tabs.
 *  Returns 1 when a file name can follow, too. */
int oj_help_print_words(const char *before);

#endif
