"""Names of the gfx12 (RDNA4) instructions by encoding and opcode.

Source: every opcode as LLVM 22's disassembler names it, which a test repeats where that is installed; the numbers are
those of "RDNA4 Instruction Set Architecture Reference Guide" of AMD, chapter 16. Within a table a number sets the
opcode of the next name, and each further name is one more. VOP3 holds VOPC, VOP2 and VOP1 as well, at the opcodes of
:data:`PROMOTED`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# Where VOP3 holds the opcodes of a shorter encoding, and how many of them. VOPC: all.
PROMOTED: Final = {"VOPC": (0, 256), "VOP2": (256, 64), "VOP1": (384, 128)}

_TABLES: Final[dict[str, str]] = {
    "DS": """
0 ds_add_u32 ds_sub_u32 ds_rsub_u32 ds_inc_u32 ds_dec_u32 ds_min_i32 ds_max_i32 ds_min_u32 ds_max_u32 ds_and_b32
ds_or_b32 ds_xor_b32 ds_mskor_b32 ds_store_b32 ds_store_2addr_b32 ds_store_2addr_stride64_b32 ds_cmpstore_b32 18
ds_min_num_f32 ds_max_num_f32 ds_nop ds_add_f32 30 ds_store_b8 ds_store_b16 ds_add_rtn_u32 ds_sub_rtn_u32
ds_rsub_rtn_u32 ds_inc_rtn_u32 ds_dec_rtn_u32 ds_min_rtn_i32 ds_max_rtn_i32 ds_min_rtn_u32 ds_max_rtn_u32
ds_and_rtn_b32 ds_or_rtn_b32 ds_xor_rtn_b32 ds_mskor_rtn_b32 ds_storexchg_rtn_b32 ds_storexchg_2addr_rtn_b32
ds_storexchg_2addr_stride64_rtn_b32 ds_cmpstore_rtn_b32 50 ds_min_num_rtn_f32 ds_max_num_rtn_f32 53 ds_swizzle_b32
ds_load_b32 ds_load_2addr_b32 ds_load_2addr_stride64_b32 ds_load_i8 ds_load_u8 ds_load_i16 ds_load_u16 ds_consume
ds_append 64 ds_add_u64 ds_sub_u64 ds_rsub_u64 ds_inc_u64 ds_dec_u64 ds_min_i64 ds_max_i64 ds_min_u64 ds_max_u64
ds_and_b64 ds_or_b64 ds_xor_b64 ds_mskor_b64 ds_store_b64 ds_store_2addr_b64 ds_store_2addr_stride64_b64
ds_cmpstore_b64 82 ds_min_num_f64 ds_max_num_f64 96 ds_add_rtn_u64 ds_sub_rtn_u64 ds_rsub_rtn_u64 ds_inc_rtn_u64
ds_dec_rtn_u64 ds_min_rtn_i64 ds_max_rtn_i64 ds_min_rtn_u64 ds_max_rtn_u64 ds_and_rtn_b64 ds_or_rtn_b64
ds_xor_rtn_b64 ds_mskor_rtn_b64 ds_storexchg_rtn_b64 ds_storexchg_2addr_rtn_b64 ds_storexchg_2addr_stride64_rtn_b64
ds_cmpstore_rtn_b64 114 ds_min_num_rtn_f64 ds_max_num_rtn_f64 118 ds_load_b64 ds_load_2addr_b64
ds_load_2addr_stride64_b64 ds_add_rtn_f32 126 ds_condxchg32_rtn_b64 152 ds_cond_sub_u32 ds_sub_clamp_u32
ds_pk_add_f16 ds_pk_add_bf16 160 ds_store_b8_d16_hi ds_store_b16_d16_hi ds_load_u8_d16 ds_load_u8_d16_hi
ds_load_i8_d16 ds_load_i8_d16_hi ds_load_u16_d16 ds_load_u16_d16_hi ds_cond_sub_rtn_u32 ds_sub_clamp_rtn_u32
ds_pk_add_rtn_f16 ds_pk_add_rtn_bf16 176 ds_store_addtid_b32 ds_load_addtid_b32 ds_permute_b32 ds_bpermute_b32 205
ds_bpermute_fi_b32 222 ds_store_b96 ds_store_b128 ds_bvh_stack_push4_pop1_rtn_b32 ds_bvh_stack_push8_pop1_rtn_b32
ds_bvh_stack_push8_pop2_rtn_b64 254 ds_load_b96 ds_load_b128
""",
    "EXPORT": """
0 export
""",
    "LDSDIR": """
0 ds_param_load ds_direct_load
""",
    "SMEM": """
0 s_load_b32 s_load_b64 s_load_b128 s_load_b256 s_load_b512 s_load_b96 8 s_load_i8 s_load_u8 s_load_i16 s_load_u16
16 s_buffer_load_b32 s_buffer_load_b64 s_buffer_load_b128 s_buffer_load_b256 s_buffer_load_b512 s_buffer_load_b96 24
s_buffer_load_i8 s_buffer_load_u8 s_buffer_load_i16 s_buffer_load_u16 33 s_dcache_inv s_atc_probe s_atc_probe_buffer
s_prefetch_inst s_prefetch_inst_pc_rel s_prefetch_data s_buffer_prefetch_data s_prefetch_data_pc_rel
""",
    "SOP1": """
0 s_mov_b32 s_mov_b64 s_cmov_b32 s_cmov_b64 s_brev_b32 s_brev_b64 8 s_ctz_i32_b32 s_ctz_i32_b64 s_clz_i32_u32
s_clz_i32_u64 s_cls_i32 s_cls_i32_i64 s_sext_i32_i8 s_sext_i32_i16 s_bitset0_b32 s_bitset0_b64 s_bitset1_b32
s_bitset1_b64 s_bitreplicate_b64_b32 s_abs_i32 s_bcnt0_i32_b32 s_bcnt0_i32_b64 s_bcnt1_i32_b32 s_bcnt1_i32_b64
s_quadmask_b32 s_quadmask_b64 s_wqm_b32 s_wqm_b64 s_not_b32 s_not_b64 s_and_saveexec_b32 s_and_saveexec_b64
s_or_saveexec_b32 s_or_saveexec_b64 s_xor_saveexec_b32 s_xor_saveexec_b64 s_nand_saveexec_b32 s_nand_saveexec_b64
s_nor_saveexec_b32 s_nor_saveexec_b64 s_xnor_saveexec_b32 s_xnor_saveexec_b64 s_and_not0_saveexec_b32
s_and_not0_saveexec_b64 s_or_not0_saveexec_b32 s_or_not0_saveexec_b64 s_and_not1_saveexec_b32
s_and_not1_saveexec_b64 s_or_not1_saveexec_b32 s_or_not1_saveexec_b64 s_and_not0_wrexec_b32 s_and_not0_wrexec_b64
s_and_not1_wrexec_b32 s_and_not1_wrexec_b64 64 s_movrels_b32 s_movrels_b64 s_movreld_b32 s_movreld_b64
s_movrelsd_2_b32 71 s_getpc_b64 s_setpc_b64 s_swappc_b64 s_rfe_b64 76 s_sendmsg_rtn_b32 s_sendmsg_rtn_b64
s_barrier_signal s_barrier_signal_isfirst s_get_barrier_state s_barrier_init s_barrier_join s_alloc_vgpr 88
s_sleep_var 96 s_ceil_f32 s_floor_f32 s_trunc_f32 s_rndne_f32 s_cvt_f32_i32 s_cvt_f32_u32 s_cvt_i32_f32
s_cvt_u32_f32 s_cvt_f16_f32 s_cvt_f32_f16 s_cvt_hi_f32_f16 s_ceil_f16 s_floor_f16 s_trunc_f16 s_rndne_f16
""",
    "SOP2": """
0 s_add_co_u32 s_sub_co_u32 s_add_co_i32 s_sub_co_i32 s_add_co_ci_u32 s_sub_co_ci_u32 s_absdiff_i32 8 s_lshl_b32
s_lshl_b64 s_lshr_b32 s_lshr_b64 s_ashr_i32 s_ashr_i64 s_lshl1_add_u32 s_lshl2_add_u32 s_lshl3_add_u32
s_lshl4_add_u32 s_min_i32 s_min_u32 s_max_i32 s_max_u32 s_and_b32 s_and_b64 s_or_b32 s_or_b64 s_xor_b32 s_xor_b64
s_nand_b32 s_nand_b64 s_nor_b32 s_nor_b64 s_xnor_b32 s_xnor_b64 s_and_not1_b32 s_and_not1_b64 s_or_not1_b32
s_or_not1_b64 s_bfe_u32 s_bfe_i32 s_bfe_u64 s_bfe_i64 s_bfm_b32 s_bfm_b64 s_mul_i32 s_mul_hi_u32 s_mul_hi_i32 48
s_cselect_b32 s_cselect_b64 s_pack_ll_b32_b16 s_pack_lh_b32_b16 s_pack_hh_b32_b16 s_pack_hl_b32_b16 64 s_add_f32
s_sub_f32 s_min_num_f32 s_max_num_f32 s_mul_f32 s_fmaak_f32 s_fmamk_f32 s_fmac_f32 s_cvt_pk_rtz_f16_f32 s_add_f16
s_sub_f16 s_min_num_f16 s_max_num_f16 s_mul_f16 s_fmac_f16 s_minimum_f32 s_maximum_f32 s_minimum_f16 s_maximum_f16
s_add_nc_u64 s_sub_nc_u64 s_mul_u64
""",
    "SOPC": """
0 s_cmp_eq_i32 s_cmp_lg_i32 s_cmp_gt_i32 s_cmp_ge_i32 s_cmp_lt_i32 s_cmp_le_i32 s_cmp_eq_u32 s_cmp_lg_u32
s_cmp_gt_u32 s_cmp_ge_u32 s_cmp_lt_u32 s_cmp_le_u32 s_bitcmp0_b32 s_bitcmp1_b32 s_bitcmp0_b64 s_bitcmp1_b64
s_cmp_eq_u64 s_cmp_lg_u64 65 s_cmp_lt_f32 s_cmp_eq_f32 s_cmp_le_f32 s_cmp_gt_f32 s_cmp_lg_f32 s_cmp_ge_f32
s_cmp_o_f32 s_cmp_u_f32 s_cmp_nge_f32 s_cmp_nlg_f32 s_cmp_ngt_f32 s_cmp_nle_f32 s_cmp_neq_f32 s_cmp_nlt_f32 81
s_cmp_lt_f16 s_cmp_eq_f16 s_cmp_le_f16 s_cmp_gt_f16 s_cmp_lg_f16 s_cmp_ge_f16 s_cmp_o_f16 s_cmp_u_f16 s_cmp_nge_f16
s_cmp_nlg_f16 s_cmp_ngt_f16 s_cmp_nle_f16 s_cmp_neq_f16 s_cmp_nlt_f16
""",
    "SOPK": """
0 s_movk_i32 s_version s_cmovk_i32 15 s_addk_co_i32 s_mulk_i32 s_getreg_b32 s_setreg_b32 s_setreg_imm32_b32
s_call_b64
""",
    "SOPP": """
0 s_nop s_setkill s_sethalt s_sleep 5 s_clause 7 s_delay_alu s_wait_alu s_waitcnt s_wait_idle s_wait_event 16 s_trap
s_round_mode s_denorm_mode 20 s_barrier_wait s_barrier_leave 31 s_code_end s_branch s_cbranch_scc0 s_cbranch_scc1
s_cbranch_vccz s_cbranch_vccnz s_cbranch_execz s_cbranch_execnz 48 s_endpgm s_endpgm_saved 52 s_wakeup s_setprio
s_sendmsg s_sendmsghalt s_incperflevel s_decperflevel s_ttracedata s_ttracedata_imm s_icache_inv 64 s_wait_loadcnt
s_wait_storecnt s_wait_samplecnt s_wait_bvhcnt s_wait_expcnt 70 s_wait_dscnt s_wait_kmcnt s_wait_loadcnt_dscnt
s_wait_storecnt_dscnt
""",
    "VBUFFER": """
0 buffer_load_format_x buffer_load_format_xy buffer_load_format_xyz buffer_load_format_xyzw buffer_store_format_x
buffer_store_format_xy buffer_store_format_xyz buffer_store_format_xyzw buffer_load_d16_format_x
buffer_load_d16_format_xy buffer_load_d16_format_xyz buffer_load_d16_format_xyzw buffer_store_d16_format_x
buffer_store_d16_format_xy buffer_store_d16_format_xyz buffer_store_d16_format_xyzw buffer_load_u8 buffer_load_i8
buffer_load_u16 buffer_load_i16 buffer_load_b32 buffer_load_b64 buffer_load_b96 buffer_load_b128 buffer_store_b8
buffer_store_b16 buffer_store_b32 buffer_store_b64 buffer_store_b96 buffer_store_b128 buffer_load_d16_u8
buffer_load_d16_i8 buffer_load_d16_b16 buffer_load_d16_hi_u8 buffer_load_d16_hi_i8 buffer_load_d16_hi_b16
buffer_store_d16_hi_b8 buffer_store_d16_hi_b16 buffer_load_d16_hi_format_x buffer_store_d16_hi_format_x 51
buffer_atomic_swap_b32 buffer_atomic_cmpswap_b32 buffer_atomic_add_u32 buffer_atomic_sub_u32
buffer_atomic_sub_clamp_u32 buffer_atomic_min_i32 buffer_atomic_min_u32 buffer_atomic_max_i32 buffer_atomic_max_u32
buffer_atomic_and_b32 buffer_atomic_or_b32 buffer_atomic_xor_b32 buffer_atomic_inc_u32 buffer_atomic_dec_u32
buffer_atomic_swap_b64 buffer_atomic_cmpswap_b64 buffer_atomic_add_u64 buffer_atomic_sub_u64 buffer_atomic_min_i64
buffer_atomic_min_u64 buffer_atomic_max_i64 buffer_atomic_max_u64 buffer_atomic_and_b64 buffer_atomic_or_b64
buffer_atomic_xor_b64 buffer_atomic_inc_u64 buffer_atomic_dec_u64 80 buffer_atomic_cond_sub_u32
buffer_atomic_min_num_f32 buffer_atomic_max_num_f32 86 buffer_atomic_add_f32 89 buffer_atomic_pk_add_f16
buffer_atomic_pk_add_bf16 128 tbuffer_load_format_x tbuffer_load_format_xy tbuffer_load_format_xyz
tbuffer_load_format_xyzw tbuffer_store_format_x tbuffer_store_format_xy tbuffer_store_format_xyz
tbuffer_store_format_xyzw tbuffer_load_d16_format_x tbuffer_load_d16_format_xy tbuffer_load_d16_format_xyz
tbuffer_load_d16_format_xyzw tbuffer_store_d16_format_x tbuffer_store_d16_format_xy tbuffer_store_d16_format_xyz
tbuffer_store_d16_format_xyzw
""",
    "VFLAT": """
16 flat_load_u8 flat_load_i8 flat_load_u16 flat_load_i16 flat_load_b32 flat_load_b64 flat_load_b96 flat_load_b128
flat_store_b8 flat_store_b16 flat_store_b32 flat_store_b64 flat_store_b96 flat_store_b128 flat_load_d16_u8
flat_load_d16_i8 flat_load_d16_b16 flat_load_d16_hi_u8 flat_load_d16_hi_i8 flat_load_d16_hi_b16 flat_store_d16_hi_b8
flat_store_d16_hi_b16 51 flat_atomic_swap_b32 flat_atomic_cmpswap_b32 flat_atomic_add_u32 flat_atomic_sub_u32
flat_atomic_sub_clamp_u32 flat_atomic_min_i32 flat_atomic_min_u32 flat_atomic_max_i32 flat_atomic_max_u32
flat_atomic_and_b32 flat_atomic_or_b32 flat_atomic_xor_b32 flat_atomic_inc_u32 flat_atomic_dec_u32
flat_atomic_swap_b64 flat_atomic_cmpswap_b64 flat_atomic_add_u64 flat_atomic_sub_u64 flat_atomic_min_i64
flat_atomic_min_u64 flat_atomic_max_i64 flat_atomic_max_u64 flat_atomic_and_b64 flat_atomic_or_b64
flat_atomic_xor_b64 flat_atomic_inc_u64 flat_atomic_dec_u64 80 flat_atomic_cond_sub_u32 flat_atomic_min_num_f32
flat_atomic_max_num_f32 86 flat_atomic_add_f32 89 flat_atomic_pk_add_f16 flat_atomic_pk_add_bf16
""",
    "VGLOBAL": """
16 global_load_u8 global_load_i8 global_load_u16 global_load_i16 global_load_b32 global_load_b64 global_load_b96
global_load_b128 global_store_b8 global_store_b16 global_store_b32 global_store_b64 global_store_b96
global_store_b128 global_load_d16_u8 global_load_d16_i8 global_load_d16_b16 global_load_d16_hi_u8
global_load_d16_hi_i8 global_load_d16_hi_b16 global_store_d16_hi_b8 global_store_d16_hi_b16 40
global_load_addtid_b32 global_store_addtid_b32 43 global_inv global_wb 51 global_atomic_swap_b32
global_atomic_cmpswap_b32 global_atomic_add_u32 global_atomic_sub_u32 global_atomic_sub_clamp_u32
global_atomic_min_i32 global_atomic_min_u32 global_atomic_max_i32 global_atomic_max_u32 global_atomic_and_b32
global_atomic_or_b32 global_atomic_xor_b32 global_atomic_inc_u32 global_atomic_dec_u32 global_atomic_swap_b64
global_atomic_cmpswap_b64 global_atomic_add_u64 global_atomic_sub_u64 global_atomic_min_i64 global_atomic_min_u64
global_atomic_max_i64 global_atomic_max_u64 global_atomic_and_b64 global_atomic_or_b64 global_atomic_xor_b64
global_atomic_inc_u64 global_atomic_dec_u64 79 global_wbinv global_atomic_cond_sub_u32 global_atomic_min_num_f32
global_atomic_max_num_f32 global_load_block global_store_block 86 global_atomic_add_f32 global_load_tr_b128
global_load_tr_b64 global_atomic_pk_add_f16 global_atomic_pk_add_bf16 115 global_atomic_ordered_add_b64
""",
    "VIMAGE": """
0 image_load image_load_mip image_load_pck image_load_pck_sgn image_load_mip_pck image_load_mip_pck_sgn image_store
image_store_mip image_store_pck image_store_mip_pck image_atomic_swap image_atomic_cmpswap image_atomic_add_uint
image_atomic_sub_uint image_atomic_min_int image_atomic_min_uint image_atomic_max_int image_atomic_max_uint
image_atomic_and image_atomic_or image_atomic_xor image_atomic_inc_uint image_atomic_dec_uint image_get_resinfo 25
image_bvh_intersect_ray image_bvh64_intersect_ray 128 image_bvh_dual_intersect_ray image_bvh8_intersect_ray 131
image_atomic_add_flt image_atomic_min_flt image_atomic_max_flt image_atomic_pk_add_f16 image_atomic_pk_add_bf16
""",
    "VINTERP": """
0 v_interp_p10_f32 v_interp_p2_f32 v_interp_p10_f16_f32 v_interp_p2_f16_f32 v_interp_p10_rtz_f16_f32
v_interp_p2_rtz_f16_f32
""",
    "VOP1": """
0 v_nop v_mov_b32 v_readfirstlane_b32 v_cvt_i32_f64 v_cvt_f64_i32 v_cvt_f32_i32 v_cvt_f32_u32 v_cvt_u32_f32
v_cvt_i32_f32 10 v_cvt_f16_f32 v_cvt_f32_f16 v_cvt_nearest_i32_f32 v_cvt_floor_i32_f32 v_cvt_off_f32_i4
v_cvt_f32_f64 v_cvt_f64_f32 v_cvt_f32_ubyte0 v_cvt_f32_ubyte1 v_cvt_f32_ubyte2 v_cvt_f32_ubyte3 v_cvt_u32_f64
v_cvt_f64_u32 v_trunc_f64 v_ceil_f64 v_rndne_f64 v_floor_f64 v_pipeflush v_mov_b16 32 v_fract_f32 v_trunc_f32
v_ceil_f32 v_rndne_f32 v_floor_f32 v_exp_f32 39 v_log_f32 42 v_rcp_f32 v_rcp_iflag_f32 46 v_rsq_f32 v_rcp_f64 49
v_rsq_f64 51 v_sqrt_f32 v_sqrt_f64 v_sin_f32 v_cos_f32 v_not_b32 v_bfrev_b32 v_clz_i32_u32 v_ctz_i32_b32 v_cls_i32
v_frexp_exp_i32_f64 v_frexp_mant_f64 v_fract_f64 v_frexp_exp_i32_f32 v_frexp_mant_f32 66 v_movreld_b32 v_movrels_b32
v_movrelsd_b32 72 v_movrelsd_2_b32 80 v_cvt_f16_u16 v_cvt_f16_i16 v_cvt_u16_f16 v_cvt_i16_f16 v_rcp_f16 v_sqrt_f16
v_rsq_f16 v_log_f16 v_exp_f16 v_frexp_mant_f16 v_frexp_exp_i16_f16 v_floor_f16 v_ceil_f16 v_trunc_f16 v_rndne_f16
v_fract_f16 v_sin_f16 v_cos_f16 v_sat_pk_u8_i16 v_cvt_norm_i16_f16 v_cvt_norm_u16_f16 v_swap_b32 v_swap_b16
v_permlane64_b32 v_swaprel_b32 v_not_b16 v_cvt_i32_i16 v_cvt_u32_u16 v_cvt_f32_fp8 v_cvt_f32_bf8 v_cvt_pk_f32_fp8
v_cvt_pk_f32_bf8
""",
    "VOP2": """
1 v_cndmask_b32 v_add_f64 v_add_f32 v_sub_f32 v_subrev_f32 v_mul_f64 v_mul_dx9_zero_f32 v_mul_f32 v_mul_i32_i24
v_mul_hi_i32_i24 v_mul_u32_u24 v_mul_hi_u32_u24 v_min_num_f64 v_max_num_f64 17 v_min_i32 v_max_i32 v_min_u32
v_max_u32 v_min_num_f32 v_max_num_f32 24 v_lshlrev_b32 v_lshrrev_b32 v_ashrrev_i32 v_and_b32 v_or_b32 v_xor_b32
v_xnor_b32 v_lshlrev_b64 v_add_co_ci_u32 v_sub_co_ci_u32 v_subrev_co_ci_u32 37 v_add_nc_u32 v_sub_nc_u32
v_subrev_nc_u32 43 v_fmac_f32 v_fmamk_f32 v_fmaak_f32 47 v_cvt_pk_rtz_f16_f32 v_min_num_f16 v_max_num_f16 v_add_f16
v_sub_f16 v_subrev_f16 v_mul_f16 v_fmac_f16 v_fmamk_f16 v_fmaak_f16 59 v_ldexp_f16 v_pk_fmac_f16
""",
    "VOP3": """
521 v_fma_dx9_zero_f32 v_mad_i32_i24 v_mad_u32_u24 v_cubeid_f32 v_cubesc_f32 v_cubetc_f32 v_cubema_f32 v_bfe_u32
v_bfe_i32 v_bfi_b32 v_fma_f32 v_fma_f64 v_lerp_u8 v_alignbit_b32 v_alignbyte_b32 v_mullit_f32 538 v_min3_i32
v_min3_u32 541 v_max3_i32 v_max3_u32 544 v_med3_i32 v_med3_u32 v_sad_u8 v_sad_hi_u8 v_sad_u16 v_sad_u32
v_cvt_pk_u8_f32 v_div_fixup_f32 v_div_fixup_f64 v_min3_num_f32 v_max3_num_f32 v_min3_num_f16 v_max3_num_f16
v_minimum3_f32 v_maximum3_f32 v_minimum3_f16 v_maximum3_f16 v_med3_num_f32 v_med3_num_f16 567 v_div_fmas_f32
v_div_fmas_f64 v_msad_u8 v_qsad_pk_u16_u8 v_mqsad_pk_u16_u8 573 v_mqsad_u32_u8 576 v_xor3_b32 v_mad_u16 580
v_perm_b32 v_xad_u32 v_lshl_add_u32 v_add_lshl_u32 v_fma_f16 586 v_min3_i16 v_min3_u16 589 v_max3_i16 v_max3_u16 592
v_med3_i16 v_med3_u16 595 v_mad_i16 v_div_fixup_f16 v_add3_u32 v_lshl_or_b32 v_and_or_b32 v_or3_b32 v_mad_u32_u16
v_mad_i32_i16 v_permlane16_b32 v_permlanex16_b32 v_cndmask_b16 610 v_maxmin_u32 v_minmax_u32 v_maxmin_i32
v_minmax_i32 v_dot2_f16_f16 v_dot2_bf16_bf16 v_minmax_num_f32 v_maxmin_num_f32 v_minmax_num_f16 v_maxmin_num_f16
v_minimummaximum_f32 v_maximumminimum_f32 v_minimummaximum_f16 v_maximumminimum_f16 640 v_s_exp_f32 v_s_exp_f16
v_s_log_f32 v_s_log_f16 v_s_rcp_f32 v_s_rcp_f16 v_s_rsq_f32 v_s_rsq_f16 v_s_sqrt_f32 v_s_sqrt_f16 764
v_div_scale_f32 v_div_scale_f64 v_mad_co_u64_u32 v_mad_co_i64_i32 v_add_co_u32 v_sub_co_u32 v_subrev_co_u32
v_add_nc_u16 v_sub_nc_u16 v_mul_lo_u16 v_cvt_pk_i16_f32 v_cvt_pk_u16_f32 777 v_max_u16 v_max_i16 v_min_u16 v_min_i16
v_add_nc_i16 v_sub_nc_i16 v_permlane16_var_b32 v_permlanex16_var_b32 v_pack_b32_f16 v_cvt_pk_norm_i16_f16
v_cvt_pk_norm_u16_f16 796 v_ldexp_f32 v_bfm_b32 v_bcnt_u32_b32 v_mbcnt_lo_u32_b32 v_mbcnt_hi_u32_b32
v_cvt_pk_norm_i16_f32 v_cvt_pk_norm_u16_f32 v_cvt_pk_u16_u32 v_cvt_pk_i16_i32 v_sub_nc_i32 v_add_nc_i32 811
v_ldexp_f64 v_mul_lo_u32 v_mul_hi_u32 v_mul_hi_i32 v_trig_preop_f64 824 v_lshlrev_b16 v_lshrrev_b16 v_ashrrev_i16
829 v_lshrrev_b64 v_ashrrev_i64 833 v_minimum_f64 v_maximum_f64 864 v_readlane_b32 v_writelane_b32 v_and_b16
v_or_b16 v_xor_b16 v_minimum_f32 v_maximum_f32 v_minimum_f16 v_maximum_f16 v_cvt_pk_fp8_f32 v_cvt_pk_bf8_f32
v_cvt_sr_fp8_f32 v_cvt_sr_bf8_f32
""",
    "VOP3P": """
0 v_pk_mad_i16 v_pk_mul_lo_u16 v_pk_add_i16 v_pk_sub_i16 v_pk_lshlrev_b16 v_pk_lshrrev_b16 v_pk_ashrrev_i16
v_pk_max_i16 v_pk_min_i16 v_pk_mad_u16 v_pk_add_u16 v_pk_sub_u16 v_pk_max_u16 v_pk_min_u16 v_pk_fma_f16 v_pk_add_f16
v_pk_mul_f16 19 v_dot2_f32_f16 22 v_dot4_i32_iu8 v_dot4_u32_u8 v_dot8_i32_iu4 v_dot8_u32_u4 v_dot2_f32_bf16
v_pk_min_num_f16 v_pk_max_num_f16 v_pk_minimum_f16 v_pk_maximum_f16 32 v_fma_mix_f32 v_fma_mixlo_f16 v_fma_mixhi_f16
36 v_dot4_f32_fp8_bf8 v_dot4_f32_bf8_fp8 v_dot4_f32_fp8_fp8 v_dot4_f32_bf8_bf8 64 v_wmma_f32_16x16x16_f16
v_wmma_f32_16x16x16_bf16 v_wmma_f16_16x16x16_f16 v_wmma_bf16_16x16x16_bf16 v_wmma_i32_16x16x16_iu8
v_wmma_i32_16x16x16_iu4 v_wmma_f32_16x16x16_fp8_fp8 v_wmma_f32_16x16x16_fp8_bf8 v_wmma_f32_16x16x16_bf8_fp8
v_wmma_f32_16x16x16_bf8_bf8 v_wmma_i32_16x16x32_iu4 80 v_swmmac_f32_16x16x32_f16 v_swmmac_f32_16x16x32_bf16
v_swmmac_f16_16x16x32_f16 v_swmmac_bf16_16x16x32_bf16 v_swmmac_i32_16x16x32_iu8 v_swmmac_i32_16x16x32_iu4
v_swmmac_i32_16x16x64_iu4 v_swmmac_f32_16x16x32_fp8_fp8 v_swmmac_f32_16x16x32_fp8_bf8 v_swmmac_f32_16x16x32_bf8_fp8
v_swmmac_f32_16x16x32_bf8_bf8
""",
    "VOPC": """
1 v_cmp_lt_f16 v_cmp_eq_f16 v_cmp_le_f16 v_cmp_gt_f16 v_cmp_lg_f16 v_cmp_ge_f16 v_cmp_o_f16 v_cmp_u_f16
v_cmp_nge_f16 v_cmp_nlg_f16 v_cmp_ngt_f16 v_cmp_nle_f16 v_cmp_neq_f16 v_cmp_nlt_f16 17 v_cmp_lt_f32 v_cmp_eq_f32
v_cmp_le_f32 v_cmp_gt_f32 v_cmp_lg_f32 v_cmp_ge_f32 v_cmp_o_f32 v_cmp_u_f32 v_cmp_nge_f32 v_cmp_nlg_f32
v_cmp_ngt_f32 v_cmp_nle_f32 v_cmp_neq_f32 v_cmp_nlt_f32 33 v_cmp_lt_f64 v_cmp_eq_f64 v_cmp_le_f64 v_cmp_gt_f64
v_cmp_lg_f64 v_cmp_ge_f64 v_cmp_o_f64 v_cmp_u_f64 v_cmp_nge_f64 v_cmp_nlg_f64 v_cmp_ngt_f64 v_cmp_nle_f64
v_cmp_neq_f64 v_cmp_nlt_f64 49 v_cmp_lt_i16 v_cmp_eq_i16 v_cmp_le_i16 v_cmp_gt_i16 v_cmp_ne_i16 v_cmp_ge_i16 57
v_cmp_lt_u16 v_cmp_eq_u16 v_cmp_le_u16 v_cmp_gt_u16 v_cmp_ne_u16 v_cmp_ge_u16 65 v_cmp_lt_i32 v_cmp_eq_i32
v_cmp_le_i32 v_cmp_gt_i32 v_cmp_ne_i32 v_cmp_ge_i32 73 v_cmp_lt_u32 v_cmp_eq_u32 v_cmp_le_u32 v_cmp_gt_u32
v_cmp_ne_u32 v_cmp_ge_u32 81 v_cmp_lt_i64 v_cmp_eq_i64 v_cmp_le_i64 v_cmp_gt_i64 v_cmp_ne_i64 v_cmp_ge_i64 89
v_cmp_lt_u64 v_cmp_eq_u64 v_cmp_le_u64 v_cmp_gt_u64 v_cmp_ne_u64 v_cmp_ge_u64 125 v_cmp_class_f16 v_cmp_class_f32
v_cmp_class_f64 129 v_cmpx_lt_f16 v_cmpx_eq_f16 v_cmpx_le_f16 v_cmpx_gt_f16 v_cmpx_lg_f16 v_cmpx_ge_f16 v_cmpx_o_f16
v_cmpx_u_f16 v_cmpx_nge_f16 v_cmpx_nlg_f16 v_cmpx_ngt_f16 v_cmpx_nle_f16 v_cmpx_neq_f16 v_cmpx_nlt_f16 145
v_cmpx_lt_f32 v_cmpx_eq_f32 v_cmpx_le_f32 v_cmpx_gt_f32 v_cmpx_lg_f32 v_cmpx_ge_f32 v_cmpx_o_f32 v_cmpx_u_f32
v_cmpx_nge_f32 v_cmpx_nlg_f32 v_cmpx_ngt_f32 v_cmpx_nle_f32 v_cmpx_neq_f32 v_cmpx_nlt_f32 161 v_cmpx_lt_f64
v_cmpx_eq_f64 v_cmpx_le_f64 v_cmpx_gt_f64 v_cmpx_lg_f64 v_cmpx_ge_f64 v_cmpx_o_f64 v_cmpx_u_f64 v_cmpx_nge_f64
v_cmpx_nlg_f64 v_cmpx_ngt_f64 v_cmpx_nle_f64 v_cmpx_neq_f64 v_cmpx_nlt_f64 177 v_cmpx_lt_i16 v_cmpx_eq_i16
v_cmpx_le_i16 v_cmpx_gt_i16 v_cmpx_ne_i16 v_cmpx_ge_i16 185 v_cmpx_lt_u16 v_cmpx_eq_u16 v_cmpx_le_u16 v_cmpx_gt_u16
v_cmpx_ne_u16 v_cmpx_ge_u16 193 v_cmpx_lt_i32 v_cmpx_eq_i32 v_cmpx_le_i32 v_cmpx_gt_i32 v_cmpx_ne_i32 v_cmpx_ge_i32
201 v_cmpx_lt_u32 v_cmpx_eq_u32 v_cmpx_le_u32 v_cmpx_gt_u32 v_cmpx_ne_u32 v_cmpx_ge_u32 209 v_cmpx_lt_i64
v_cmpx_eq_i64 v_cmpx_le_i64 v_cmpx_gt_i64 v_cmpx_ne_i64 v_cmpx_ge_i64 217 v_cmpx_lt_u64 v_cmpx_eq_u64 v_cmpx_le_u64
v_cmpx_gt_u64 v_cmpx_ne_u64 v_cmpx_ge_u64 253 v_cmpx_class_f16 v_cmpx_class_f32 v_cmpx_class_f64
""",
    "VOPD_X": """
0 v_dual_fmac_f32 v_dual_fmaak_f32 v_dual_fmamk_f32 v_dual_mul_f32 v_dual_add_f32 v_dual_sub_f32 v_dual_subrev_f32
v_dual_mul_dx9_zero_f32 v_dual_mov_b32 v_dual_cndmask_b32 v_dual_max_num_f32 v_dual_min_num_f32
v_dual_dot2acc_f32_f16 v_dual_dot2acc_f32_bf16
""",
    "VOPD_Y": """
0 v_dual_fmac_f32 v_dual_fmaak_f32 v_dual_fmamk_f32 v_dual_mul_f32 v_dual_add_f32 v_dual_sub_f32 v_dual_subrev_f32
v_dual_mul_dx9_zero_f32 v_dual_mov_b32 v_dual_cndmask_b32 v_dual_max_num_f32 v_dual_min_num_f32
v_dual_dot2acc_f32_f16 v_dual_dot2acc_f32_bf16 16 v_dual_add_nc_u32 v_dual_lshlrev_b32 v_dual_and_b32
""",
    "VSAMPLE": """
24 image_msaa_load 27 image_sample image_sample_d image_sample_l image_sample_b image_sample_lz image_sample_c
image_sample_c_d image_sample_c_l image_sample_c_b image_sample_c_lz image_sample_o image_sample_d_o
image_sample_l_o image_sample_b_o image_sample_lz_o image_sample_c_o image_sample_c_d_o image_sample_c_l_o
image_sample_c_b_o image_sample_c_lz_o image_gather4 image_gather4_l image_gather4_b image_gather4_lz
image_gather4_c image_gather4_c_lz image_gather4_o image_gather4_lz_o image_gather4_c_lz_o image_get_lod
image_sample_d_g16 image_sample_c_d_g16 image_sample_d_o_g16 image_sample_c_d_o_g16 64 image_sample_cl
image_sample_d_cl image_sample_b_cl image_sample_c_cl image_sample_c_d_cl image_sample_c_b_cl image_sample_cl_o
image_sample_d_cl_o image_sample_b_cl_o image_sample_c_cl_o image_sample_c_d_cl_o image_sample_c_b_cl_o 84
image_sample_c_d_cl_g16 image_sample_d_cl_o_g16 image_sample_c_d_cl_o_g16 95 image_sample_d_cl_g16 image_gather4_cl
image_gather4_b_cl image_gather4_c_cl image_gather4_c_l image_gather4_c_b image_gather4_c_b_cl 144 image_gather4h
""",
    "VSCRATCH": """
16 scratch_load_u8 scratch_load_i8 scratch_load_u16 scratch_load_i16 scratch_load_b32 scratch_load_b64
scratch_load_b96 scratch_load_b128 scratch_store_b8 scratch_store_b16 scratch_store_b32 scratch_store_b64
scratch_store_b96 scratch_store_b128 scratch_load_d16_u8 scratch_load_d16_i8 scratch_load_d16_b16
scratch_load_d16_hi_u8 scratch_load_d16_hi_i8 scratch_load_d16_hi_b16 scratch_store_d16_hi_b8
scratch_store_d16_hi_b16 83 scratch_load_block scratch_store_block
""",
}


def _table(text: str) -> Mapping[int, str]:
    names: dict[int, str] = {}
    opcode = 0
    for word in text.split():
        if word.isdigit():
            opcode = int(word)
        else:
            names[opcode] = word
            opcode += 1
    return MappingProxyType(names)


def _tables() -> dict[str, Mapping[int, str]]:
    found = {encoding: _table(text) for encoding, text in _TABLES.items()}
    promoted = {
        first + opcode: name
        for encoding, (first, count) in PROMOTED.items()
        for opcode, name in found[encoding].items()
        if opcode < count and name not in SHORT_ONLY
    }
    found["VOP3"] = MappingProxyType({**promoted, **found["VOP3"]})
    return found


# Instructions of VOP1 and VOP2 that VOP3 does not have.
SHORT_ONLY: Final = frozenset({
    "v_readfirstlane_b32", "v_swap_b32", "v_swap_b16", "v_permlane64_b32", "v_swaprel_b32", "v_fmamk_f32",
    "v_fmaak_f32", "v_fmamk_f16", "v_fmaak_f16", "v_pk_fmac_f16",
})  # fmt: skip
# Encoding to opcode to name; the halves of VOPD, which have opcodes of their own, are VOPD_X and VOPD_Y.
OPCODES: Final[Mapping[str, Mapping[int, str]]] = MappingProxyType(_tables())
MNEMONICS: Final = frozenset(name for table in OPCODES.values() for name in table.values())
