/** What the command prints on stdout when it is asked about itself. */
#ifndef OJ_HELP_H
#define OJ_HELP_H

/** The text of --help, made from the tables of options, joins and backends. */
void oj_help_print(void);

/** The man page, made from its template (ogrjoin.1.in) and the tables. 0: the
 *  template cannot be read, or adds to an option that there is not. */
int oj_help_print_man(const char *template);

/** The GPUs that can be used, or why none can. */
void oj_help_print_devices(void);

/** The words that can follow the word before on a command line, one a line, for
 *  completion; for other programs, after "--parameters", those of all joins
 *  with their arguments, the joins that take them and their help, between tabs.
 *  1 when the name of a file can follow, too. */
int oj_help_print_words(const char *before);

#endif
