import numpy as np
from column_sums import column_sums

import nkitools.pallas

run = nkitools.pallas.check(column_sums, np.ones((32, 128), np.int32), chips=("v5e", "v6e"))
for finding in run.findings:
    print(f"column_sums.py:{finding.line}: {finding.rule} {finding.message}")
    print(f"  {finding.remedy}")
