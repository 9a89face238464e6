"""The ``solbench`` command: one module a verb, loaded when it is called."""

from __future__ import annotations

import errno
import gc
import importlib
import keyword
import os
import sys
from collections.abc import Sequence

import click

from solbench import __version__
from solbench.errors import SolbenchError

# verb: (attribute of solbench.cli.<verb>, one line for the overview)
VERBS = {
    "evaluate": "Check and time one solution of a problem on a target.",
    "compile": "Show what a candidate becomes on gfx1200, without the card.",
    "code": "Record HIP code, and derive again what is recorded.",
    "verdicts": "Record what the emulated gfx1200 says of all candidates; check it again.",
    "analyze": "Derive the bound of a problem, or of a plain PyTorch file, on a target.",
    "measure": "Measure a corpus on this machine into a measurement set.",
    "measurements": "Put measurement sets together.",
    "verify": "Check a downloaded bundle: no GPU, no PyTorch needed.",
    "release": "Add measurements to a release; compare two releases.",
    "qualify": "Write what a target has shown: analysis, code, one run of each workload.",
    "score": "Print the scores of a release, n of N.",
    "site": "Render the static site of a store.",
    "corpus": "List and validate problems.",
    "import": "Read problems and solutions of other systems.",
    "export": "Write problems, solutions and traces for other systems.",
    "hardware": "Show and lint machine models.",
    "device": "List, own and recover the GPUs of this machine.",
    "repro": "Rebuild the releases: `dvc repro` under our own lock.",
    "store": "List, print, trace and check the artifacts of a checkout.",
    "bundle": "Write a release as one archive that anyone can verify.",
    "pull": "Fetch artifacts from a DVC remote, checked before they land.",
    "push": "Send artifacts to a DVC remote and check that all arrived.",
    "remote": "Ask a DVC remote whether every object is there.",
    "stage": "Run one stage of the pipeline (called by dvc.yaml).",
}


class _Verbs(click.Group):
    """A group whose commands are imported only when used, so that every verb starts fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        name = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        command = getattr(importlib.import_module(f"solbench.cli.{name}"), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="solbench")
def cli() -> None:
    """Is a GPU kernel right, and how far is it from what the hardware allows?

    Exit codes: 0 yes or done, 1 a check failed, 2 bad input, 3 could not decide, 4 unsupported, 130 interrupted.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point: every expected failure is one line on stderr and a fitting exit code."""
    code = run(arguments)
    # The system frees what is left; to look through all of it for cycles first takes as long as a start. Triton's
    # library complains at length of objects that are not freed.
    if "triton" not in sys.modules:
        gc.freeze()
    sys.exit(code)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code (see ``solbench --help``)."""
    color = False if os.environ.get("NO_COLOR") else None
    try:
        result = cli.main(args=arguments, prog_name="solbench", standalone_mode=False, color=color)
        return result if isinstance(result, int) else 0
    except SolbenchError as error:
        _complain(str(error))
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except (KeyboardInterrupt, click.Abort):
        _complain("interrupted")
        return 130
    except BrokenPipeError:
        # The reader went away; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 3
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        hint = " (free some space and run again)" if error.errno == errno.ENOSPC else ""
        _complain(f"{where}{error.strerror or error}{hint}")
        return 3


def printable(text: str) -> str:
    """``text`` with control, bidi and other invisible characters escaped: safe on a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def _complain(message: str) -> None:
    click.echo(f"solbench: {printable(message).replace(chr(10), ' ')}", err=True)
