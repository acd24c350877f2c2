//go:build cgo && linux

#include "guard.h"

int hipshim_begin_capture(const struct hipshim *t, int device, uintptr_t stream, int mode) {
  ON_DEVICE(t->hipStreamBeginCapture((hipStream_t)stream, mode));
}

int hipshim_end_capture(const struct hipshim *t, int device, uintptr_t stream, uintptr_t *graph) {
  ON_DEVICE(t->hipStreamEndCapture((hipStream_t)stream, (hipGraph_t *)graph));
}

int hipshim_graph_instantiate(const struct hipshim *t, int device, uintptr_t graph, uintptr_t *exec) {
  RELAXED_ON_DEVICE(t->hipGraphInstantiate((hipGraphExec_t *)exec, (hipGraph_t)graph, NULL, NULL, 0));
}

int hipshim_graph_launch(const struct hipshim *t, int device, uintptr_t exec, uintptr_t stream) {
  ON_DEVICE(t->hipGraphLaunch((hipGraphExec_t)exec, (hipStream_t)stream));
}

int hipshim_graph_destroy(const struct hipshim *t, int device, uintptr_t graph) {
  RELAXED_ON_DEVICE(t->hipGraphDestroy((hipGraph_t)graph));
}

int hipshim_exec_destroy(const struct hipshim *t, int device, uintptr_t exec) {
  RELAXED_ON_DEVICE(t->hipGraphExecDestroy((hipGraphExec_t)exec));
}
