	.amdgcn_target "amdgpu12.00-amd-amdhsa-unknown-gfx1200"
	.amdhsa_code_object_version 5
	.text
	.globl	product                         ; -- Begin function product
	.p2align	8
	.type	product,@function
product:                                ; @product
.Lfunc_begin0:
	.file	1 "/candidate" "product.py"
	.loc	1 12 0                          ; product.py:12:0
	.cfi_sections .debug_frame
	.cfi_startproc
; %bb.0:
	.cfi_escape 0x0f, 0x04, 0x30, 0x36, 0xe9, 0x02 ; CFA is 0 in private_wave aspace
	.cfi_undefined 16
	s_load_b128 s[4:7], s[0:1], 0x0
.Ltmp0:
	.loc	1 15 5 prologue_end             ; product.py:15:5
	v_dual_mov_b32 v1, 0 :: v_dual_and_b32 v2, 1, v0
	v_lshlrev_b32_e32 v3, 1, v0
	v_lshrrev_b32_e32 v4, 4, v0
	v_lshrrev_b32_e32 v13, 1, v0
	s_delay_alu instid0(VALU_DEP_4)
	v_lshlrev_b32_e32 v5, 4, v2
	s_load_b64 s[0:1], s[0:1], 0x10
	v_mov_b32_e32 v2, v1
	v_and_or_b32 v6, v3, 30, v4
	v_mov_b32_e32 v4, v1
	v_lshl_or_b32 v5, v13, 11, v5
	v_dual_mov_b32 v3, v1 :: v_dual_mov_b32 v8, v1
	s_delay_alu instid0(VALU_DEP_4) | instskip(SKIP_1) | instid1(VALU_DEP_3)
	v_lshlrev_b32_e32 v14, 2, v6
	s_wait_kmcnt 0x0
	v_add_co_u32 v6, s2, s4, v5
	s_delay_alu instid0(VALU_DEP_1) | instskip(SKIP_1) | instid1(VALU_DEP_3)
	v_add_co_ci_u32_e64 v7, null, s5, 0, s2
	v_add_co_u32 v9, s2, s6, v5
	v_add_co_u32 v11, vcc_lo, v6, 64
	s_wait_alu depctr_va_sdst(0)
	v_add_co_ci_u32_e64 v10, null, s7, 0, s2
	v_add_co_ci_u32_e64 v12, null, 0, v7, vcc_lo
	v_dual_mov_b32 v5, v1 :: v_dual_mov_b32 v6, v1
	v_mov_b32_e32 v7, v1
	s_movk_i32 s2, 0xffc0
.LBB0_1:                                ; =>This Inner Loop Header: Depth=1
	.loc	1 17 13                         ; product.py:17:13
	global_load_b128 v[15:18], v[9:10], off
	.loc	1 16 13                         ; product.py:16:13
	global_load_b128 v[19:22], v[11:12], off offset:-64
	.loc	1 17 13                         ; product.py:17:13
	global_load_b128 v[23:26], v[9:10], off offset:32
	.loc	1 16 13                         ; product.py:16:13
	global_load_b128 v[27:30], v[11:12], off offset:-32
	.loc	1 17 13                         ; product.py:17:13
	global_load_b128 v[31:34], v[9:10], off offset:64
	.loc	1 16 13                         ; product.py:16:13
	global_load_b128 v[35:38], v[11:12], off
	.loc	1 17 13                         ; product.py:17:13
	global_load_b128 v[39:42], v[9:10], off offset:96
	.loc	1 16 13                         ; product.py:16:13
	global_load_b128 v[43:46], v[11:12], off offset:32
	.loc	1 15 5                          ; product.py:15:5
	v_add_co_u32 v11, vcc_lo, 0x80, v11
	s_wait_alu depctr_va_vcc(0)
	v_add_co_ci_u32_e64 v12, null, 0, v12, vcc_lo
	v_add_co_u32 v9, vcc_lo, 0x80, v9
	s_wait_alu depctr_va_vcc(0)
	v_add_co_ci_u32_e64 v10, null, 0, v10, vcc_lo
	s_wait_alu depctr_sa_sdst(0)
	s_add_co_i32 s2, s2, 64
	s_wait_alu depctr_sa_sdst(0)
	s_cmp_lt_u32 s2, 0x3c0
	.loc	1 18 25                         ; product.py:18:25
	s_wait_loadcnt 0x7
	ds_bpermute_b32 v15, v14, v15
	ds_bpermute_b32 v16, v14, v16
	ds_bpermute_b32 v17, v14, v17
	ds_bpermute_b32 v18, v14, v18
	.loc	1 16 13                         ; product.py:16:13
	s_wait_loadcnt 0x6
	ds_bpermute_b32 v19, v14, v19
	ds_bpermute_b32 v20, v14, v20
	ds_bpermute_b32 v21, v14, v21
	ds_bpermute_b32 v22, v14, v22
	.loc	1 18 25                         ; product.py:18:25
	s_wait_loadcnt 0x5
	ds_bpermute_b32 v23, v14, v23
	ds_bpermute_b32 v24, v14, v24
	ds_bpermute_b32 v25, v14, v25
	ds_bpermute_b32 v26, v14, v26
	.loc	1 16 13                         ; product.py:16:13
	s_wait_loadcnt 0x4
	ds_bpermute_b32 v27, v14, v27
	ds_bpermute_b32 v28, v14, v28
	ds_bpermute_b32 v29, v14, v29
	ds_bpermute_b32 v30, v14, v30
	.loc	1 18 25                         ; product.py:18:25
	s_wait_loadcnt 0x3
	ds_bpermute_b32 v31, v14, v31
	ds_bpermute_b32 v32, v14, v32
	ds_bpermute_b32 v33, v14, v33
	ds_bpermute_b32 v34, v14, v34
	.loc	1 16 13                         ; product.py:16:13
	s_wait_loadcnt 0x2
	ds_bpermute_b32 v35, v14, v35
	ds_bpermute_b32 v36, v14, v36
	ds_bpermute_b32 v37, v14, v37
	ds_bpermute_b32 v38, v14, v38
	.loc	1 18 25                         ; product.py:18:25
	s_wait_loadcnt 0x1
	ds_bpermute_b32 v39, v14, v39
	ds_bpermute_b32 v40, v14, v40
	ds_bpermute_b32 v41, v14, v41
	ds_bpermute_b32 v42, v14, v42
	.loc	1 16 13                         ; product.py:16:13
	s_wait_loadcnt 0x0
	ds_bpermute_b32 v43, v14, v43
	ds_bpermute_b32 v44, v14, v44
	ds_bpermute_b32 v45, v14, v45
	ds_bpermute_b32 v46, v14, v46
	.loc	1 18 15                         ; product.py:18:15
	s_wait_dscnt 0x18
	v_wmma_f32_16x16x16_f16 v[1:8], v[15:18], v[19:22], v[1:8]
	s_wait_dscnt 0x10
	s_delay_alu instid0(VALU_DEP_1) | instskip(SKIP_1) | instid1(VALU_DEP_1)
	v_wmma_f32_16x16x16_f16 v[1:8], v[23:26], v[27:30], v[1:8]
	s_wait_dscnt 0x8
	v_wmma_f32_16x16x16_f16 v[1:8], v[31:34], v[35:38], v[1:8]
	s_wait_dscnt 0x0
	s_delay_alu instid0(VALU_DEP_1)
	v_wmma_f32_16x16x16_f16 v[1:8], v[39:42], v[43:46], v[1:8]
	.loc	1 15 5                          ; product.py:15:5
	s_cbranch_scc1 .LBB0_1
; %bb.2:
	.loc	1 19 14                         ; product.py:19:14
	v_lshlrev_b32_e32 v0, 6, v0
	.loc	1 19 36 is_stmt 0               ; product.py:19:36
	v_and_b32_e32 v9, 8, v13
	s_delay_alu instid0(VALU_DEP_2) | instskip(NEXT) | instid1(VALU_DEP_2)
	.loc	1 19 14                         ; product.py:19:14
	v_and_b32_e32 v0, 0x3c0, v0
	v_lshlrev_b32_e32 v9, 2, v9
	s_delay_alu instid0(VALU_DEP_2) | instskip(SKIP_2) | instid1(VALU_DEP_2)
	v_add_co_u32 v0, s0, s0, v0
	s_wait_alu depctr_va_sdst(0)
	v_add_co_ci_u32_e64 v10, null, s1, 0, s0
	v_add_co_u32 v9, vcc_lo, v0, v9
	s_wait_alu depctr_va_vcc(0)
	s_delay_alu instid0(VALU_DEP_2)
	v_add_co_ci_u32_e64 v10, null, 0, v10, vcc_lo
	.loc	1 19 5                          ; product.py:19:5
	s_clause 0x1
	global_store_b128 v[9:10], v[1:4], off
	global_store_b128 v[9:10], v[5:8], off offset:16
	.loc	1 12 1 is_stmt 1                ; product.py:12:1
	s_endpgm
.Ltmp1:
.Lfunc_end0:
	.size	product, .Lfunc_end0-product
	.cfi_endproc
	.section	.rodata,"a",@progbits
	.p2align	6, 0x0
	.amdhsa_kernel product
		.amdhsa_group_segment_fixed_size 0
		.amdhsa_private_segment_fixed_size 0
		.amdhsa_kernarg_size 40
		.amdhsa_user_sgpr_count 2
		.amdhsa_user_sgpr_dispatch_ptr 0
		.amdhsa_user_sgpr_queue_ptr 0
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_user_sgpr_dispatch_id 0
		.amdhsa_user_sgpr_private_segment_size 0
		.amdhsa_wavefront_size32 1
		.amdhsa_uses_dynamic_stack 0
		.amdhsa_enable_private_segment 0
		.amdhsa_system_sgpr_workgroup_id_x 1
		.amdhsa_system_sgpr_workgroup_id_y 1
		.amdhsa_system_sgpr_workgroup_id_z 1
		.amdhsa_system_sgpr_workgroup_info 0
		.amdhsa_system_vgpr_workitem_id 0
		.amdhsa_next_free_vgpr 47
		.amdhsa_next_free_sgpr 8
		.amdhsa_reserve_vcc 1
		.amdhsa_float_round_mode_32 0
		.amdhsa_float_round_mode_16_64 0
		.amdhsa_float_denorm_mode_32 3
		.amdhsa_float_denorm_mode_16_64 3
		.amdhsa_fp16_overflow 0
		.amdhsa_workgroup_processor_mode 1
		.amdhsa_memory_ordered 1
		.amdhsa_forward_progress 1
		.amdhsa_inst_pref_size ((instprefsize(.Lfunc_end0-product)<<4)&4080)>>4
		.amdhsa_round_robin_scheduling 0
		.amdhsa_exception_fp_ieee_invalid_op 0
		.amdhsa_exception_fp_denorm_src 0
		.amdhsa_exception_fp_ieee_div_zero 0
		.amdhsa_exception_fp_ieee_overflow 0
		.amdhsa_exception_fp_ieee_underflow 0
		.amdhsa_exception_fp_ieee_inexact 0
		.amdhsa_exception_int_div_zero 0
	.end_amdhsa_kernel
	.text
                                        ; -- End function
	.set .Lproduct.num_vgpr, 47
	.set .Lproduct.num_agpr, 0
	.set .Lproduct.numbered_sgpr, 8
	.set .Lproduct.num_named_barrier, 0
	.set .Lproduct.private_seg_size, 0
	.set .Lproduct.uses_vcc, 1
	.set .Lproduct.uses_flat_scratch, 0
	.set .Lproduct.has_dyn_sized_stack, 0
	.set .Lproduct.has_recursion, 0
	.set .Lproduct.has_indirect_call, 0
	.section	.AMDGPU.csdata,"",@progbits
; Kernel info:
; codeLenInByte = 776
; TotalNumSgprs: 10
; NumVgprs: 47
; ScratchSize: 0
; MemoryBound: 0
; FloatMode: 240
; IeeeMode: 1
; LDSByteSize: 0 bytes/workgroup (compile time only)
; SGPRBlocks: 0
; VGPRBlocks: 5
; NumSGPRsForWavesPerEU: 10
; NumVGPRsForWavesPerEU: 47
; Occupancy: 16
; WaveLimiterHint : 0
; COMPUTE_PGM_RSRC2:SCRATCH_EN: 0
; COMPUTE_PGM_RSRC2:USER_SGPR: 2
; COMPUTE_PGM_RSRC2:TRAP_HANDLER: 0
; COMPUTE_PGM_RSRC2:TGID_X_EN: 1
; COMPUTE_PGM_RSRC2:TGID_Y_EN: 1
; COMPUTE_PGM_RSRC2:TGID_Z_EN: 1
; COMPUTE_PGM_RSRC2:TIDIG_COMP_CNT: 0
	.text
	.p2alignl 7, 3214868480
	.fill 96, 4, 3214868480
	.section	.AMDGPU.gpr_maximums,"",@progbits
	.set amdgpu.max_num_vgpr, 0
	.set amdgpu.max_num_agpr, 0
	.set amdgpu.max_num_sgpr, 0
	.set amdgpu.max_num_named_barrier, 0
	.text
	.section	.debug_abbrev,"",@progbits
	.byte	1                               ; Abbreviation Code
	.byte	17                              ; DW_TAG_compile_unit
	.byte	0                               ; DW_CHILDREN_no
	.byte	37                              ; DW_AT_producer
	.byte	14                              ; DW_FORM_strp
	.byte	19                              ; DW_AT_language
	.byte	5                               ; DW_FORM_data2
	.byte	3                               ; DW_AT_name
	.byte	14                              ; DW_FORM_strp
	.byte	16                              ; DW_AT_stmt_list
	.byte	23                              ; DW_FORM_sec_offset
	.byte	27                              ; DW_AT_comp_dir
	.byte	14                              ; DW_FORM_strp
	.ascii	"\341\177"                      ; DW_AT_APPLE_optimized
	.byte	25                              ; DW_FORM_flag_present
	.byte	17                              ; DW_AT_low_pc
	.byte	1                               ; DW_FORM_addr
	.byte	18                              ; DW_AT_high_pc
	.byte	6                               ; DW_FORM_data4
	.byte	0                               ; EOM(1)
	.byte	0                               ; EOM(2)
	.byte	0                               ; EOM(3)
	.section	.debug_info,"",@progbits
.Lcu_begin0:
	.long	.Ldebug_info_end0-.Ldebug_info_start0 ; Length of Unit
.Ldebug_info_start0:
	.short	4                               ; DWARF version number
	.long	.debug_abbrev                   ; Offset Into Abbrev. Section
	.byte	8                               ; Address Size (in bytes)
	.byte	1                               ; Abbrev [1] 0xb:0x1f DW_TAG_compile_unit
	.long	.Linfo_string0                  ; DW_AT_producer
	.short	2                               ; DW_AT_language
	.long	.Linfo_string1                  ; DW_AT_name
	.long	.Lline_table_start0             ; DW_AT_stmt_list
	.long	.Linfo_string2                  ; DW_AT_comp_dir
                                        ; DW_AT_APPLE_optimized
	.quad	.Lfunc_begin0                   ; DW_AT_low_pc
	.long	.Lfunc_end0-.Lfunc_begin0       ; DW_AT_high_pc
.Ldebug_info_end0:
	.section	.debug_str,"MS",@progbits,1
.Linfo_string0:
	.asciz	"triton"                        ; string offset=0 ; triton
.Linfo_string1:
	.asciz	"product.py"                    ; string offset=7 ; product.py
.Linfo_string2:
	.asciz	"/candidate"                    ; string offset=18 ; /candidate
	.section	".note.GNU-stack","",@progbits
	.amdgpu_metadata
---
amdhsa.kernels:
  - .args:
      - .address_space:  global
        .offset:         0
        .size:           8
        .value_kind:     global_buffer
      - .address_space:  global
        .offset:         8
        .size:           8
        .value_kind:     global_buffer
      - .address_space:  global
        .offset:         16
        .size:           8
        .value_kind:     global_buffer
      - .address_space:  global
        .offset:         24
        .size:           8
        .value_kind:     global_buffer
      - .address_space:  global
        .offset:         32
        .size:           8
        .value_kind:     global_buffer
    .group_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .kernarg_segment_size: 40
    .max_flat_workgroup_size: 32
    .name:           product
    .private_segment_fixed_size: 0
    .sgpr_count:     10
    .sgpr_spill_count: 0
    .symbol:         product.kd
    .uniform_work_group_size: 1
    .uses_dynamic_stack: false
    .vgpr_count:     47
    .vgpr_spill_count: 0
    .wavefront_size: 32
    .workgroup_processor_mode: 1
amdhsa.target:   amdgpu12.00-amd-amdhsa-unknown-gfx1200
amdhsa.version:
  - 1
  - 2
...

	.end_amdgpu_metadata
	.section	.debug_line,"",@progbits
.Lline_table_start0:
