/** The command "gdal vector join", for GDAL 3.12 and later. */
#ifndef OJ_GDAL_VECTOR_JOIN_H
#define OJ_GDAL_VECTOR_JOIN_H

/** Registers the command with GDAL; to be called once. */
void oj_vector_algorithm_declare(void);

#endif
