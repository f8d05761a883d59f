/** "gdal vector join", GDAL 3.12 and later. */
#ifndef OJ_GDAL_VECTOR_JOIN_H
#define OJ_GDAL_VECTOR_JOIN_H

/** Registers it with GDAL's command. Call it once. */
void oj_vector_algorithm_declare(void);

#endif
