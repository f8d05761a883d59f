#include "cpu_cells.h"

#include "../flatten/oj_array.h"

void oj_cells_free(struct oj_cells *cells)
{
    (void)cells;
}
