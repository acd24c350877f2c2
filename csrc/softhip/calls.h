// Every HIP function that softhip has, with the first HIP version that has it: the table behind softhip_find, fault
// injection by name, and what hip= and missing= leave out.
#ifndef SOFTHIP_CALLS_H
#define SOFTHIP_CALLS_H

#define SOFTHIP_CALLS(X) \
    X(hipInit, 0) \
    X(hipGetDeviceCount, 0) \
    X(hipGetDevice, 0) \
    X(hipSetDevice, 0) \
    X(hipDeviceGet, 0) \
    X(hipDeviceGetAttribute, 0) \
    X(hipDeviceGetPCIBusId, 0) \
    X(hipDeviceGetByPCIBusId, 0) \
    X(hipDeviceGetName, 0) \
    X(hipDeviceGetUuid, 502) \
    X(hipDeviceSynchronize, 0) \
    X(hipDeviceGetStreamPriorityRange, 0) \
    X(hipGetDeviceProperties, 0) \
    X(hipGetDevicePropertiesR0000, 600) \
    X(hipGetDevicePropertiesR0600, 600) \
    X(hipRuntimeGetVersion, 0) \
    X(hipDriverGetVersion, 0) \
    X(hipGetErrorName, 0) \
    X(hipGetErrorString, 0) \
    X(hipGetLastError, 0) \
    X(hipPeekAtLastError, 0) \
    X(hipMalloc, 0) \
    X(hipExtMallocWithFlags, 0) \
    X(hipFree, 0) \
    X(hipMemGetInfo, 0) \
    X(hipHostMalloc, 0) \
    X(hipHostFree, 0) \
    X(hipHostGetDevicePointer, 0) \
    X(hipHostGetFlags, 0) \
    X(hipHostRegister, 0) \
    X(hipHostUnregister, 0) \
    X(hipPointerGetAttributes, 0) \
    X(hipMemGetAddressRange, 0) \
    X(hipMemGetHandleForAddressRange, 700) \
    X(hipMemcpy, 0) \
    X(hipMemcpyAsync, 0) \
    X(hipMemset, 0) \
    X(hipMemsetAsync, 0) \
    X(hipStreamCreate, 0) \
    X(hipStreamCreateWithFlags, 0) \
    X(hipStreamCreateWithPriority, 0) \
    X(hipExtStreamCreateWithCUMask, 0) \
    X(hipStreamDestroy, 0) \
    X(hipStreamQuery, 0) \
    X(hipStreamSynchronize, 0) \
    X(hipStreamGetFlags, 0) \
    X(hipStreamGetPriority, 0) \
    X(hipStreamWaitEvent, 0) \
    X(hipStreamWaitValue32, 0) \
    X(hipStreamWaitValue64, 0) \
    X(hipStreamWriteValue32, 0) \
    X(hipStreamWriteValue64, 0) \
    X(hipStreamBatchMemOp, 604) \
    X(hipStreamBeginCapture, 0) \
    X(hipStreamEndCapture, 0) \
    X(hipStreamIsCapturing, 0) \
    X(hipThreadExchangeStreamCaptureMode, 0) \
    X(hipGraphInstantiate, 0) \
    X(hipGraphInstantiateWithFlags, 0) \
    X(hipGraphLaunch, 0) \
    X(hipGraphExecDestroy, 0) \
    X(hipGraphDestroy, 0) \
    X(hipEventCreate, 0) \
    X(hipEventCreateWithFlags, 0) \
    X(hipEventRecord, 0) \
    X(hipEventQuery, 0) \
    X(hipEventSynchronize, 0) \
    X(hipEventElapsedTime, 0) \
    X(hipEventDestroy, 0) \
    X(hipModuleLoadData, 0) \
    X(hipModuleUnload, 0) \
    X(hipModuleGetFunction, 0) \
    X(hipModuleLaunchKernel, 0) \
    X(hipLaunchHostFunc, 0)

#endif
