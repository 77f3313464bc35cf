"""Plan and execute one compaction with `hudi_assets.executor=hudi`, in Hudi's environment: PySpark 3.5, this engine.

    python compact_with_hudi.py SITE_PACKAGES BUNDLE.jar|none PATH THRESHOLD key=value…

Prints the result as JSON on its last line; an error of the engine's own kinds as {"error": …}.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def main(bundle: str, path: str, threshold: str, settings: dict[str, str]) -> dict[str, object]:
    from hudi_assets.engine import HudiAssetsError, HudiTable, NoPlan
    from hudi_assets.engine.actions.compaction.hudi_executor import session_settings
    from hudi_assets.engine.spark.start import local_session

    spark = local_session("interop", "local[2]", session_settings(bundle) if bundle != "none" else {})
    try:
        table = HudiTable.open(path, settings={"hudi_assets.executor": "hudi", **settings})
        plan = table.plan_compaction(threshold=int(threshold))
        if isinstance(plan, NoPlan):
            return {"no_plan": plan.reason}
        return {"spark": spark.version, **asdict(table.execute_compaction(spark, plan.instant))}
    except HudiAssetsError as error:
        return {"error": f"{type(error).__name__}: {error}"}
    finally:
        spark.stop()


if __name__ == "__main__":
    # Behind this environment's own packages: its PySpark is the one that counts.
    sys.path.append(sys.argv[1])
    sys.path.insert(0, str(ROOT))
    given = dict(one.split("=", 1) for one in sys.argv[5:])
    print(json.dumps(main(sys.argv[2], sys.argv[3], sys.argv[4], given)))
