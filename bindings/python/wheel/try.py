"""What an installed wheel must do, beside numpy alone: plan from arrays, read and write files.
usage: try.py FOLDER, where lengths.npy and plan.msgpack are left"""

import sys
from pathlib import Path

import numpy as np

import hbp


def main() -> None:
    folder = Path(sys.argv[1])
    lengths = np.random.default_rng(0).lognormal(7, 1.5, 20000).astype(np.int64).clip(1, 131072)
    cost = hbp.Cost(hbp.Model.preset("llama-3.1-8b"), hbp.Machine.preset("h100", nodes=4))
    plan = hbp.plan_epoch(lengths, cost, max_length=131072, seed=0)
    np.save(folder / "lengths.npy", lengths)
    plan.save(folder / "plan.msgpack")
    again = hbp.Plan.load(folder / "plan.msgpack")
    read = hbp.plan_epoch(hbp.Lengths.read(folder / "lengths.npy"), cost, max_length=131072, seed=0)
    assert again.digest == plan.digest == read.digest, (again.digest, plan.digest, read.digest)

    # XML is read without hwloc, which looks at machines: a wheel has none and says so.
    xml = folder / "topology.xml"
    xml.write_text('<topology version="2.0"><object type="Machine"><object type="PU"/></object></topology>')
    assert hbp.Machine.probe(xml=xml).fields.processing_units == 1
    try:
        hbp.Machine.probe()
    except hbp.SystemFailure as error:
        assert "built without hwloc" in str(error), error
    else:
        raise AssertionError("a machine was probed without hwloc")
    print(
        f"hbp {hbp.__version__} from {Path(hbp.__file__).parent}: plan {plan.digest:016x} of {len(plan)} steps"
    )


if __name__ == "__main__":
    main()
