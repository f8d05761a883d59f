/** Finds the file of the CUDA module and checks that it is safe to load, since
 *  its code runs in the process.
 *
 *  The path is the environment variable OGRJOIN_CUDA_MODULE if set; otherwise
 *  the module is searched beside the library and in the folder of installed
 *  libraries (which a Python wheel does not have).
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
 *  path     output: its path, for messages
 *  file     output: the descriptor; the caller closes it
 *
 *  OJ_ERR_NO_DEVICE with the reason: there is no file, or it is refused. */
OJ_MUST_USE oj_status oj_gpu_module_file_open(char path[OJ_GPU_MODULE_PATH_MAX],
                                              int *file, struct oj_error *err);

#endif
