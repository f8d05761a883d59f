/** Finds the file of the CUDA module and checks that it is safe to load, since
 *  its code runs in the process.
 *
 *  The path is OGRJOIN_CUDA_MODULE if set, else beside the library, else in the
 *  folder of installed libraries (a wheel has none).
 *
 *  The file and its folders must belong to root or to the user, and no other
 *  user may write to them. Write permission for a group is accepted if the user
 *  is its only member.
 */
#ifndef OJ_GPU_MODULE_FILE_H
#define OJ_GPU_MODULE_FILE_H

#include "../../../flatten/base/oj_status.h"

#define OJ_GPU_MODULE_PATH_MAX 4096

/** Opens the file for reading, after the checks.
 *
 *  path     receives its name, for messages
 *  file     receives the descriptor; the caller closes it
 *
 *  OJ_ERR_NO_DEVICE with the reason: there is no file, or it is refused. */
OJ_MUST_USE oj_status oj_gpu_module_file_open(char path[OJ_GPU_MODULE_PATH_MAX],
                                              int *file, struct oj_error *err);

#endif
