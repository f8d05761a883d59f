/** "gdal vector join", GDAL 3.12 and later. */
#ifndef OJ_VECTOR_ALGORITHM_H
#define OJ_VECTOR_ALGORITHM_H

/** Makes it known to GDAL's command; once. */
void oj_vector_algorithm_declare(void);

#endif
