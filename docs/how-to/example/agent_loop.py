"""Ask a model for a kernel until the judge is content: ``python agent_loop.py task.py COMMAND ...``."""

import json
import re
import subprocess
import sys
from pathlib import Path

TASK, MODEL = Path(sys.argv[1]), sys.argv[2:]  # the command reads a prompt and writes the model's answer
TURNS, KERNEL = 8, Path("candidate.py")


def ask(prompt):
    answer = subprocess.run(MODEL, input=prompt, capture_output=True, text=True, check=True).stdout
    blocks = re.findall(r"```(?:python)?\n(.*?)```", answer, re.DOTALL)
    return blocks[-1] if blocks else answer


def judge():
    command = [sys.executable, "-m", "nkitools", "verify", f"{KERNEL}::kernel", "--reference", f"{TASK}::reference"]
    done = subprocess.run([*command, "--json", "--fail-fast", "--seconds", "60"], capture_output=True, text=True)
    return json.loads(done.stdout or json.dumps({"outcome": "fail", "rows": [], "stopped": done.stderr.strip()}))


def main():
    prompt = task = f"Write `kernel`, an NKI kernel, with imports: one Python file. It computes:\n{TASK.read_text()}"
    for turn in range(1, TURNS + 1):
        KERNEL.write_text(ask(prompt))
        verdict = judge()
        failed = [row for row in verdict["rows"] if row["outcome"] == "fail"]
        print(f"turn {turn}: {verdict['outcome']} {[row['row'] for row in failed]} {verdict['stopped']}")
        if verdict["outcome"] == "pass":
            return 0
        said = json.dumps(failed or verdict["stopped"] or verdict["rows"])
        prompt = f"{task}\nYour last answer:\n```python\n{KERNEL.read_text()}```\nThe judge:\n{said}"
    return 1


if __name__ == "__main__":
    sys.exit(main())
