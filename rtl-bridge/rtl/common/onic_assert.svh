// Assertion macros, all in the cheap form: an immediate assertion in a clocked block, off while the domain is in reset.
//
// An assertion has a name, a condition over bits or narrow vectors, and a message that says what went wrong. A failure
// prints instance path, name and message; the harness turns it into a typed error with cycle and path. Wide data are
// compared only while they are held (ONIC_ASSERT_AXIS_STABLE): $stable on 512 bits costs two thirds of the speed.
//
// File lists are read with `verilator -F`, and name this folder in +incdir+.
`ifndef ONIC_ASSERT_SVH
`define ONIC_ASSERT_SVH

// EXPR holds at every rising edge of CLK at which RSTN is high.
`define ONIC_ASSERT(NAME, CLK, RSTN, EXPR, MSG) \
  always_ff @(posedge CLK) begin \
    if (RSTN) NAME: assert (EXPR) else $error("%m: %s", MSG); \
  end

// A parameter is legal. Placed among module items; stops elaboration or time 0 with the instance path.
`define ONIC_ASSERT_PARAM(NAME, EXPR, MSG) \
  if (!(EXPR)) begin : gen_bad_``NAME \
    $fatal(1, MSG); \
  end

// A transfer that is offered stays as it is until it is taken. PAYLOAD is compared only while it is held; the registers
// that hold it for the comparison are written only when a stall begins.
`define ONIC_ASSERT_STABLE(NAME, CLK, RSTN, VALID, READY, PAYLOAD, WIDTH, MSG) \
  logic NAME``_stall_q; \
  logic [(WIDTH)-1:0] NAME``_held_q; \
  always_ff @(posedge CLK) begin \
    NAME``_stall_q <= (RSTN) && (VALID) && !(READY); \
    if ((VALID) && !(READY) && !NAME``_stall_q) NAME``_held_q <= PAYLOAD; \
    if (NAME``_stall_q && (RSTN)) \
      NAME: assert ((VALID) && (PAYLOAD) == NAME``_held_q) else $error("%m: %s", MSG); \
  end

`endif
