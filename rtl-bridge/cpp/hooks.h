// Included before everything else in each file of a Verilated library (g++ -include): Verilator's printing goes here
// instead of to stdout. The hooks for stop, fatal, finish and warn are declared by Verilator itself and defined in
// verilated_top.h, since the defaults end the process or report to the context that was created last.
#pragma once

#ifdef __cplusplus
extern "C"
#endif
int onic_rtl_printf(const char* format, ...) __attribute__((format(printf, 1, 2)));

#define VL_PRINTF onic_rtl_printf
