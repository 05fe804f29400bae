"""Every behaviour that Relay's own tests of partitioning pinned down has a test of its name here."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.unit import test_annotate_target, test_merge_compiler_regions, test_merge_composite, test_partition_graph

BEHAVIOURS: dict[ModuleType, str] = {
    test_partition_graph: """
        multi_node_compiler extern_ccompiler_single_op extern_ccompiler_default_ops extern_ccompiler_multiple_functions
        extern_ccompiler extern_dnnl extern_dnnl_mobilenet function_lifting function_lifting_inline constant_propagation
        multiple_outputs mixed_single_multiple_outputs dnnl_fuse multiple_use_of_an_output duplicate_outputs
        duplicate_merge_and_tuplegetitem constant_tuples flatten_tuple_output tuple_output_exec extern_opt""",
    test_annotate_target: """
        extern_dnnl extern_dnnl_mobilenet multiple_ends type_propagation ref_create_read_write tuple composite_function
        double_target different_targets multiple_runs ends_with_tuple if_else while_let if_free_vars free_vars_zeros
        empty_tuple""",
    test_merge_compiler_regions: "diamond_graph_fanouts example_graph",
    test_merge_composite: """
        simple_merge branch_merge reuse_call_merge multiple_patterns optional_pattern merge_order parallel_merge
        multiple_input_subgraphs tuple_get_item_merge pattern_with_check diamond_not_merge type_check""",
}
"""The names of test_pass_partition_graph.py, test_pass_annotate_target.py, test_pass_merge_compiler_regions.py and
test_pass_merge_composite.py of TVM 0.8, without `test_`."""


@pytest.mark.parametrize("home", BEHAVIOURS, ids=lambda home: home.__name__)
def test_each_has_a_test(home: ModuleType):
    assert [name for name in BEHAVIOURS[home].split() if not callable(getattr(home, f"test_{name}", None))] == []


def test_there_are_fifty():
    assert [len(names.split()) for names in BEHAVIOURS.values()] == [20, 16, 2, 12]
