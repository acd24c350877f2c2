//go:build cgo && linux

// Stream value operations.
#include "world.h"

// value_op queues one wait or write on a stream already entered.
static int value_op(struct stream *s, enum kind kind, enum call call, void *at, uint64_t value, unsigned flags, uint64_t mask, unsigned width) {
    if (s->capture != NULL && world.set.capture_values == VALUES_REFUSE)
        return hipErrorStreamCaptureUnsupported;
    if (version_at_least(7, 0) && s->device != current_device())
        return hipErrorInvalidValue; // HIP 7 resolves the address against the current device
    if ((uintptr_t)at % width != 0)
        return hipErrorInvalidValue;
    struct op *o = stream_op(s, s->queue, kind, call);
    if (o == NULL)
        return hipErrorOutOfMemory;
    o->dst = at;
    o->bytes = o->width = width;
    o->value = value;
    o->mask = mask;
    o->flags = flags;
    int code = op_bind(o);
    if (code != hipSuccess)
        stream_discard(s, s->queue, o);
    else
        stream_submit(s, s->queue, o);
    return code;
}

static int wait_value(void *handle, void *at, uint64_t value, unsigned flags, uint64_t mask, unsigned width, enum call call) {
    if (world.set.stream_wait != 1)
        return call_leave(hipErrorNotSupported);
    struct stream *s;
    int code = flags > WAIT_NOR ? hipErrorInvalidValue : stream_begin(handle, &s);
    if (code != hipSuccess)
        return call_leave(code);
    return stream_unlock(s, value_op(s, OP_WAIT, call, at, value, flags, mask, width));
}

static int write_flags(unsigned *flags) {
    if (!version_at_least(7, 0))
        *flags = WRITE_PLAIN; // ignored up to 6.3
    return *flags == WRITE_PLAIN || *flags == WRITE_INCREMENT || *flags == WRITE_DECREMENT ? hipSuccess : hipErrorInvalidValue;
}

static int write_value(void *handle, void *at, uint64_t value, unsigned flags, unsigned width, enum call call) {
    if (world.set.stream_wait != 1)
        return call_leave(hipErrorNotSupported);
    struct stream *s;
    int code = write_flags(&flags);
    code = code != hipSuccess ? code : stream_begin(handle, &s);
    if (code != hipSuccess)
        return call_leave(code);
    return stream_unlock(s, value_op(s, OP_WRITE, call, at, value, flags, 0, width));
}

API(hipStreamWaitValue64)(void *stream, void *at, uint64_t value, unsigned flags, uint64_t mask) {
    CALL(hipStreamWaitValue64);
    return wait_value(stream, at, value, flags, mask, 8, CALL_hipStreamWaitValue64);
}

API(hipStreamWaitValue32)(void *stream, void *at, uint32_t value, unsigned flags, uint32_t mask) {
    CALL(hipStreamWaitValue32);
    return wait_value(stream, at, value, flags, mask, 4, CALL_hipStreamWaitValue32);
}

API(hipStreamWriteValue64)(void *stream, void *at, uint64_t value, unsigned flags) {
    CALL(hipStreamWriteValue64);
    return write_value(stream, at, value, flags, 8, CALL_hipStreamWriteValue64);
}

API(hipStreamWriteValue32)(void *stream, void *at, uint32_t value, unsigned flags) {
    CALL(hipStreamWriteValue32);
    return write_value(stream, at, value, flags, 4, CALL_hipStreamWriteValue32);
}

API(hipStreamBatchMemOp)(void *stream, unsigned count, hipBatchOp *ops, unsigned flags) {
    CALL(hipStreamBatchMemOp);
    if (count == 0 || count > 256 || ops == NULL || flags != 0)
        return call_leave(hipErrorInvalidValue);
    if (world.set.stream_wait != 1)
        return call_leave(hipErrorNotSupported);
    struct stream *s;
    int code = stream_begin(stream, &s);
    if (code != hipSuccess)
        return call_leave(code);
    for (unsigned i = 0; i < count && code == hipSuccess; i++) {
        unsigned how = ops[i].value.flags;
        switch (ops[i].value.operation) {
        case BATCH_WAIT32:
        case BATCH_WAIT64:
            code = how > WAIT_NOR ? hipErrorInvalidValue
                                  : value_op(s, OP_WAIT, CALL_hipStreamBatchMemOp, ops[i].value.address, ops[i].value.value, how, ~(uint64_t)0,
                                             ops[i].value.operation == BATCH_WAIT64 ? 8 : 4);
            break;
        case BATCH_WRITE32:
        case BATCH_WRITE64:
            code = write_flags(&how);
            if (code == hipSuccess)
                code = value_op(s, OP_WRITE, CALL_hipStreamBatchMemOp, ops[i].value.address, ops[i].value.value, how, 0,
                                ops[i].value.operation == BATCH_WRITE64 ? 8 : 4);
            break;
        case BATCH_FLUSH:
        case BATCH_BARRIER: break;
        default: code = hipErrorInvalidValue;
        }
    }
    return stream_unlock(s, code);
}
