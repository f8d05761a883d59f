/** Finds the file of the CUDA module and checks that loading it is safe, since
 *  its code runs in the process.
 *
 *  It is the file that OGRJOIN_CUDA_MODULE names, else the one beside the
 *  library, else that of the installed libraries, which a build for a wheel
 * does not have.  It is taken only when it and the folders that it is found in
 *  belong to root or to this user and no other user may write to them.  The
 *  group of a user who is alone in it is no other user. */
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
