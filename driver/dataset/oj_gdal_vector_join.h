/** "gdal vector join", GDAL 3.12 and later. */
#ifndef OJ_GDAL_VECTOR_JOIN_H
#define OJ_GDAL_VECTOR_JOIN_H

/** Makes it known to GDAL's command; once. */
void oj_vector_algorithm_declare(void);

#endif
