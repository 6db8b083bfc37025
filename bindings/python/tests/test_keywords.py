"""No field of an options struct is out of reach: each is a keyword of the functions that take the struct."""

import inspect
import unittest

import hbp
from hbp import _numbers, _records
from hbp.epoch import EpochKeywords
from hbp.pipeline import Pipeline, PipelineKeywords
from hbp.step import StepKeywords

# By struct: who takes its fields as keywords.
TAKERS = {
    "BalanceOptions": [hbp.balance_attention],
    "BudgetsOptions": [hbp.choose_budgets],
    "CostFileOptions": [hbp.Cost.save],
    "CostOptions": [hbp.Cost.__init__],
    "EpochOptions": [EpochKeywords],
    "FillOptions": [hbp.greedy_fill],
    "GroupsOptions": [hbp.plan_groups],
    "IterativeFillOptions": [hbp.iterative_fill],
    "LengthsLoadOptions": [hbp.Lengths.read],
    "LengthsOptions": [hbp.Lengths.from_array],
    "LayerPartitionOptions": [hbp.partition_layers],
    "PartitionOptions": [hbp.partition],
    "PipelineOptions": [Pipeline, PipelineKeywords],
    "PlanSaveOptions": [hbp.Plan.save],
    "RecomputeOptions": [hbp.choose_recompute],
    "SimulateOptions": [hbp.simulate],
    "SpOptions": [hbp.choose_sp, hbp.list_sp_choices],
    "StepOptions": [StepKeywords],
    "StepperOptions": [hbp.Stepper],
    "TaskRunOptions": [hbp.simulate_tasks, hbp.TaskRun.validate],
    "TasksOptions": [hbp.plan_tasks],
    "TraceOptions": [hbp.Plan.trace],
    "VlmLayersOptions": [hbp.Vlm.layers],
    "VlmOptions": [hbp.plan_vlm],
}
# Fields that Python has under another name or finds out itself.
OTHERWISE = {
    "EpochOptions": {"batch_offsets": "batches", "batch_samples": "batches"},
    "LengthsOptions": {"borrow": "copy"},
    "PartitionOptions": {"allow_empty": "nonempty", "linear": "weights", "square": "weights"},
}


def keywords(taker) -> "set[str]":
    """Of a function, a class or a TypedDict; what has a default where nothing is a keyword only."""
    if hasattr(taker, "__total__"):
        return set(taker.__annotations__)
    parameters = inspect.signature(taker).parameters.values()
    only = {parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}
    return only or {parameter.name for parameter in parameters if parameter.default is not parameter.empty}


class TestKeywords(unittest.TestCase):
    def test_every_options_struct_has_takers(self):
        options = {name for name in _records.structs() if name.endswith("Options")}
        self.assertEqual(options - {"ContextOptions"}, set(TAKERS))

    def test_every_field_is_a_keyword_and_no_other(self):
        beside = {"parts", "progress", "stages"}  # of a call; given in place, or by the cuts
        for name, takers in TAKERS.items():
            fields = {OTHERWISE.get(name, {}).get(field, field) for field in getattr(_records, name)._record}
            for taker in takers:
                self.assertEqual(keywords(taker) - beside, fields - beside, f"{name}: {taker}")

    def test_every_column_is_an_argument(self):
        for name, taker in (("LayerColumns", hbp.Layers), ("TimelineColumns", hbp.Timeline),
                            ("LengthsColumns", hbp.LengthsBuilder.append), ("LengthsColumns", hbp.Stepper.submit),
                            ("Measurements", hbp.Cost.fit)):
            fields = set(getattr(_records, name)._record) - {"count", "steps"}  # how long they are
            self.assertEqual(fields - set(inspect.signature(taker).parameters), set(), name)

    def test_values_have_every_field(self):
        """Classes of Python that say what a struct says: tables as tuples, texts as str."""
        for name, kind, otherwise in (
            ("CostTerms", hbp.CostTerms, {"degrees"}),  # how long the tables are
            ("Operator", hbp.Operator, set()),
            ("MachineRate", hbp.Rate, set()),
        ):
            self.assertEqual(set(kind.__annotations__) ^ set(getattr(_records, name)._record), otherwise, name)

    def test_trainers_words_lead_to_options(self):
        taken = {*EpochKeywords.__annotations__, *StepKeywords.__annotations__}
        partition = set(inspect.signature(hbp.partition).parameters)
        for word, names in _numbers.TRAINERS_WORDS.items():
            self.assertNotIn(word, taken | partition)
            self.assertLessEqual(set(names), taken | partition, word)
        for call, word, meant in (
            (lambda **given: hbp.partition([1], 1, **given), "max_tokens", "capacity"),
            (lambda **given: hbp.plan_epoch([1], hbp.Cost.plain(1), **given), "global_batch_size", "samples_per_step"),
            (lambda **given: hbp.plan_epoch([1], hbp.Cost.plain(1), **given), "seq_length", "max_length"),
        ):
            with self.assertRaisesRegex(TypeError, f"there is no option '{word}' .did you mean '{meant}'"):
                call(**{word: 4})

    def test_views_name_every_column(self):
        """Every column of a view is an attribute of its object."""
        for kind in (hbp.Lengths, hbp.Groups, hbp.Packs, hbp.Plan, hbp.Layers, hbp.LayerPartition, hbp.PipelineRun,
                     hbp.PatternPlan, hbp.VlmPlan, hbp.TaskSchedule, hbp.TaskRun, hbp.Graph):
            view = getattr(_records, kind.__name__ + "View")
            columns = {name for name, field in view._record.items() if field.column}
            self.assertEqual({name for name in columns if not hasattr(kind, name)}, set(), kind)


if __name__ == "__main__":
    unittest.main()
