"""Words that the project's English does without, and where they still are.

    python .ci/words.py            # fails if there are more than LIMIT, and lists them

Each has a plainer word: "reports" for *tells*, "no worker" for *nobody*, "again" for *anew*,
"custom" for *of one's own*. A few places are right to have one, so that a small number is allowed.
"""

import re
import subprocess
import sys
from pathlib import Path

LIMIT = 20
WORDS = re.compile(
    r"\b(?:told|tells?|telling|nobody|somebody|who(?:m)?ever|besides?|anew|lesser|doomed|alike"
    r"|heed(?:s|ed)?|mend(?:s|ed|ing)?|so many|as ever|comes? (?:to|along)|(?:is|are) none of"
    r"|knows? no|let(?:s|ting)? go of|in words|without a word"
    r"|(?:gone|goes) on|go on (?:from|with)|of ours|in the place of|asks of|package brings"
    r"|of (?:one's|its|their|our|your|his) own|as it stands|stands? (?:in|for|there|beside))\b",
    re.IGNORECASE,
)
SUFFIXES = {".py", ".pyi", ".md", ".js", ".json", ".html", ".yml", ".toml", ".txt", ""}
#: Files that name the words, or are not ours.
LEFT_OUT = {".ci/words.py", "ding/board/static/uplot.js"}


def main() -> None:
    root = Path(__file__).resolve().parent.parent
    listed = subprocess.run(
        ["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True
    )
    found = []
    for name in listed.stdout.splitlines():
        path = root / name
        if path.suffix not in SUFFIXES or name in LEFT_OUT or not path.is_file():
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            found += [f"{name}:{number}: {word[0]}" for word in WORDS.finditer(line)]
    if len(found) > LIMIT:
        print(*found, sep="\n")
    print(f"{len(found)} words to replace, {LIMIT} are allowed")
    sys.exit(len(found) > LIMIT)


if __name__ == "__main__":
    main()
