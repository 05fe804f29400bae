// RUN: relay-opt %s | relay-opt | filecheck %s
// RUN: relay-opt %s --print-op-generic | relay-opt | filecheck %s

// CHECK-LABEL: func.func @stage
// CHECK:         [[S:%.+]] = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
// CHECK-NEXT:    [[T:%.+]] = "nvgpu.device_async_copy"([[S]], %to, %x, %from) <{{.*}}dstElements = 16 : index{{.*}}> : (memref<?xi8, #gpu.address_space<workgroup>>, index, memref<512xi8>, index) -> !nvgpu.device.async.token
// CHECK-NEXT:    [[G:%.+]] = "nvgpu.device_async_create_group"() : () -> !nvgpu.device.async.token
// CHECK-NEXT:    "nvgpu.device_async_wait"([[G]]) <{numGroups = 1 : i32}> : (!nvgpu.device.async.token) -> ()
// CHECK-NEXT:    "nvgpu.ldmatrix"([[S]], %to) <{{.*}}numTiles = 4 : i32{{.*}}> : (memref<?xi8, #gpu.address_space<workgroup>>, index) -> vector<4x4xi8>
func.func @stage(%x: memref<512xi8>, %to: index, %from: index) {
  %s = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
  %t = "nvgpu.device_async_copy"(%s, %to, %x, %from) <{bypassL1, dstElements = 16 : index, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>}> : (memref<?xi8, #gpu.address_space<workgroup>>, index, memref<512xi8>, index) -> !nvgpu.device.async.token
  %g = "nvgpu.device_async_create_group"() : () -> !nvgpu.device.async.token
  "nvgpu.device_async_wait"(%g) <{numGroups = 1 : i32}> : (!nvgpu.device.async.token) -> ()
  %m = "nvgpu.ldmatrix"(%s, %to) <{numTiles = 4 : i32, transpose = false}> : (memref<?xi8, #gpu.address_space<workgroup>>, index) -> vector<4x4xi8>
  func.return
}
