// SPDX-License-Identifier: Apache-2.0
// What holds a pod's namespaces: waits until it is told to end, and takes in orphans.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int number) {
  (void)number;
  _exit(0);
}

int main(void) {
  signal(SIGTERM, end);
  signal(SIGINT, end);
  for (;;) {
    if (waitpid(-1, NULL, 0) < 0) pause();
  }
}
