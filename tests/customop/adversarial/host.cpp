// What operators do to their host. No rule speaks of it; the session goes on, and the next call is right.
=== opens_files | elements | -
  for (int i = 0; i < 2000; i++) open("/dev/null", O_RDONLY);
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
=== closes_files | elements | -
  for (int fd = 0; fd < 256; fd++) close(fd);
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
=== changes_directory | elements | -
  if (chdir("/") == 0) o[0] = 1;
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
=== changes_environment | elements | -
  setenv("PATH", "/nowhere", 1);
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
=== forks_ten | elements | -
  for (int i = 0; i < 10; i++) {
    if (fork() == 0) {
      sleep(60);
      _exit(0);
    }
  }
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
=== forks_a_session | elements | -
  if (fork() == 0) {
    setsid();
    if (fork() == 0) sleep(60);
    _exit(0);
  }
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
=== returns_twice | elements | -
  if (fork() == 0) return out;
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
=== writes_much | elements | -
  static char page[1 << 20];
  for (int i = 0; i < 64; i++) {
    if (write(1, page, sizeof page) < 0) break;
  }
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
=== writes_escapes | elements | -
  puts("\x1b[2J\x1b]0;title\x07::error file=op.cpp::yes");
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
=== writes_an_answer | elements | -
  for (int fd = 3; fd < 32; fd++) {
    if (write(fd, "{\"status\": 0}\n", 14) < 0) continue;
  }
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
=== signals_its_group | elements | -
  signal(SIGTERM, SIG_IGN);
  kill(0, SIGTERM);
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
=== stops_itself | elements | -
  if (n > 1) raise(SIGSTOP);
=== kills_its_parent_gently | elements | -
  kill(getppid(), SIGINT);
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
=== ignores_everything | elements | -
  for (int i = 1; i < 32; i++) signal(i, SIG_IGN);
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
=== keeps_state | elements | -
  static int calls = 0;
  if (++calls > 1) *(volatile int*)nullptr = 1;
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
=== leaks_the_heap | elements | -
  for (int i = 0; i < 64; i++) memset(malloc(1 << 20), 1, 1 << 20);
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
=== smashes_its_call | elements | -
  char* p = const_cast<char*>(reinterpret_cast<const char*>(&in[0]));
  for (int64_t i = 4; i < 800000; i += 4) memset(p - i, 0x3f, 4);
=== removes_its_memory | elements | -
  for (int fd = 3; fd < 64; fd++) {
    if (ftruncate(fd, 0)) continue;
  }
=== limits_itself | elements | -
  struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CPU, &none);
  setrlimit(RLIMIT_FSIZE, &none);
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
=== holds_the_pipe | elements | -
  if (fork() == 0) {
    signal(SIGHUP, SIG_IGN);
    for (;;) sleep(60);
  }
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
