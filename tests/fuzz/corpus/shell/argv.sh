tini
--
/bin/bash
-euo
pipefail
-lc
echo $B