"""Breakages of what is published in AWS Glue, and of synced tables that say already what is true."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

GLUE = ("tests/catalog/test_glue.py",)


BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "in AWS Glue a change of somebody else's meanwhile is undone",
        "hudi_assets/catalog/glue.py",
        "                VersionId=version,\n",
        "",
        GLUE,
    ),
    Breakage(
        "in AWS Glue an account's number of versions is used up",
        "hudi_assets/catalog/glue.py",
        "                SkipArchive=True,",
        "                SkipArchive=False,",
        GLUE,
    ),
    Breakage(
        "in AWS Glue fields of a table are lost that Hudi does not set",
        "hudi_assets/catalog/glue.py",
        "for field, value in entry.table.items() if field in taken}",
        'for field, value in entry.table.items() if field in taken and field != "Description"}',
        GLUE,
    ),
    Breakage(
        "a table of another name's case is not found in AWS Glue",
        "hudi_assets/catalog/glue.py",
        "answer = self._client.get_table(**self._of_catalog, DatabaseName=database.lower(), Name=name.lower())",
        "answer = self._client.get_table(**self._of_catalog, DatabaseName=database, Name=name)",
        GLUE,
    ),
    Breakage(
        "what AWS says of a wrong signature, with a token in it, is told",
        "hudi_assets/catalog/glue.py",
        "            raise problem.told from None",
        "            raise problem.told from error",
        GLUE,
    ),
    Breakage(
        "a synced table is altered that says already what is true",
        "hudi_assets/catalog/publishing.py",
        "    if said is not None:\n        return said\n",
        "",
        GLUE,
    ),
    Breakage(
        "a synced table of an earlier publication stays beside one of the newest",
        "hudi_assets/catalog/publication.py",
        "    if publication is None or any(one != first for one in ours) or",
        "    if publication is None or",
        GLUE,
    ),
    Breakage(
        "in AWS Glue the table of the partitions is moved back by who was overtaken",
        "hudi_assets/catalog/glue.py",
        "        if found is None or (expected is not None and found.parameters.get(expected[0]) != expected[1]):\n",
        "        if found is None:\n",
        GLUE,
    ),
    Breakage(
        "in AWS Glue the table of the partitions lies where Athena does not look",
        "hudi_assets/catalog/glue.py",
        '        "Location": as_s3(location) or location,  # Athena',
        '        "Location": location,  # Athena',
        GLUE,
    ),
    Breakage(
        "a file stays behind to which AWS Glue refused to send readers",
        "hudi_assets/catalog/glue.py",
        '        return Refused(f"AWS denies',
        '        return EnvironmentProblem(f"AWS denies',
        GLUE,
    ),
    Breakage(
        "a table that AWS Glue denies holds up all others of a sensor",
        "hudi_assets/dagster/known.py",
        "            except Refused:\n                continue\n",
        "",
        ("tests/dagster/test_known.py",),
    ),
    Breakage(
        "credentials that boto3 cannot get end a tick of the sensor",
        "hudi_assets/catalog/glue.py",
        "    except (BotoCoreError, ValueError, OSError, RuntimeError) as error:",
        "    except (BotoCoreError, ValueError) as error:",
        ("tests/catalog/test_glue.py::test_credentials_that_boto3_cannot_get_are_a_problem_of_the_environment",),
    ),
)
