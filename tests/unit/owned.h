/** Layers and answers that are freed automatically at the end of their block.
 */
#ifndef OWNED_H
#define OWNED_H

#define LAYER __attribute__((cleanup(oj_flat_buf_free))) struct oj_flat_buf
#define MATCHES __attribute__((cleanup(oj_matches_free))) struct oj_matches

#endif
