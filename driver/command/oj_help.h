/** Prints the help of the command to stdout: --help, man page, devices, words
 *  for completion. */
#ifndef OJ_HELP_H
#define OJ_HELP_H

/** Prints --help from the tables of options, joins and backends. */
void oj_help_print(void);

/** Prints what `ogrjoin` prints without arguments: purpose, usage, where to
 *  find more. */
void oj_help_print_usage(void);

/** Prints the joins and options that have the word in their name or section,
 *  the options of the join with this name, and the options with an argument of
 *  this name. If there are none, prints the options that have the word in their
 *  help. Leading dashes are ignored. Returns 0 if nothing matches. */
int oj_help_print_topic(const char *word);

/** Prints the man page, made from its template (ogrjoin.1.in) and the tables.
 *  Returns 0 if the template cannot be read or describes an option that does
 *  not exist. */
int oj_help_print_man(const char *template);

/** Prints the usable GPUs, or why there is none. */
void oj_help_print_devices(void);

/** Prints the words that can follow the word `before`, one per line, for
 *  completion in a shell. After "--parameters" it prints the parameters of all
 *  joins for other programs: name, arguments, joins and help, separated by
 *  tabs. Returns 1 if a file name can follow, too. */
int oj_help_print_words(const char *before);

#endif
