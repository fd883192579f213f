// What the compiled operator and nkitools' Python side say to each other. abi.py mirrors these structures field by
// field; nkt_abi_size() lets it refuse a library whose structures are of another version.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nkt {

constexpr int kMaxArguments = 16;
constexpr int kMaxDims = 8;
constexpr int kMaxCores = 8;     // GpSimd processors of a NeuronCore-v2 (custom-ops-ref-guide)
constexpr int kMaxEvents = 256;  // distinct ones; repeats are counted
constexpr int kMaxFrames = 16;
constexpr int kMaxForks = 256;   // of a call; a device has no processes
constexpr int kTextBytes = 160;
constexpr int kPrintBytes = 4 * 131072;
constexpr int kMaxMoves = 32768;

// Of a tensor in an event: an argument's number, or one of these.
constexpr int32_t kOutput = 1000;
constexpr int32_t kLocal = 1001;
constexpr int32_t kNoTensor = -1;

enum ArgumentKind : int32_t { kTensorArgument = 0, kScalarDouble = 1, kScalarInteger = 2 };

enum CoreStatus : int32_t { kNotRun = 0, kRunning = 1, kFinished = 2, kStopped = 3, kCrashed = 4, kTimedOut = 5 };

// What is told to Python, which knows the rule and the sentence of each kind (events.py).
enum EventKind : int32_t {
  kOutOfBoundsRead = 1,     // a, b: first and last element asked for; count: elements outside; d: elements of the tensor
  kOutOfBoundsWrite = 2,
  kElementIndex = 3,        // a: index, b: size of the dimension, c: the dimension
  kTcmTooSmall = 4,         // a: bytes asked for, b: bytes of the block from the pointer on, c: site of its tcm_malloc
  kTcmFreedUse = 5,         // a: bytes of the block, c: site of its tcm_malloc, d: site of its tcm_free
  kTcmNullUse = 6,          // a: bytes asked for by the tcm_malloc that failed (0: none did), b: bytes in use then
  kNotTcm = 7,
  kTcmLeak = 8,             // count: bytes; site: the tcm_malloc
  kBadFree = 9,             // a: 0 unknown, 1 freed before, 2 inside of a block, 3 null; d: site of the first free
  kTcmOverrun = 10,         // a: bytes of the block, b: 1 before it, 0 after it; c: site of the tcm_malloc
  kAccessorInMulticore = 11,  // a: 0 element, 1 read stream, 2 write stream
  kDstMissing = 12,
  kDtype = 13,              // a: dtype asked for, b: dtype of the tensor
  kDims = 14,               // a: dims asked for, b: dims of the tensor
  kShapes = 15,             // operands of different shapes; text: which operation
  kShapeFunctionReads = 16,
  kReturned = 17,           // the returned tensor is not what the shape function said; Call::returned
  kStreamPastEnd = 18,      // a: 0 read, 1 write; b: elements of the tensor
  kStreamClosed = 19,       // a: 0 read, 1 write
  kIncoherent = 20,         // a: 0 a stream beside a write stream, 1 element accessor beside a stream; b: 1 warning
  kManyStreams = 21,        // a: streams active now
  kPrintOffCore = 22,
  kCrash = 23,              // a: signal, b: address, c: 0 plain, 1 beyond a block, 2 freed block, 3 null, 4 stack,
                            // 5 beyond a tensor (count: its bytes, b: bytes from its beginning)
  kException = 24,          // text: what()
  kAssertion = 25,          // text: the expression; a: line, file in text after a zero
  kTimeout = 26,
  kOverlap = 27,            // a core wrote elements that another core had written
  kStack = 28,              // a: bytes
  kOperation = 29,          // text: what an operation cannot take
  kDimensionLimit = 30,     // a: dims; text
  kCanaryCopied = 31,       // what is copied to a tensor looks like memory that nobody has written
  kExit = 32,               // a: status
  kReadOfOthers = 33,       // a core reads elements of the output that another one wrote; a, b: first and last
  kTcmUnaligned = 34,       // a: bytes of an element
  kForks = 35,              // a: the most
  kTcmRefused = 36,         // a: bytes asked for, b: bytes that are free
};

enum Guard {
  kGuardNone = 0,
  kGuardFront = 1,  // blocks and tensors begin behind a page that nobody may touch
  kGuardEnd = 2,    // they end before one, to the byte
};

struct TensorRecord {
  int64_t offset;
  int64_t numel;
  int64_t sizes[kMaxDims];
  int32_t dim;
  int32_t dtype;
};

struct Argument {
  int32_t kind;
  int32_t unused;
  TensorRecord tensor;
  double number;
  int64_t integer;
};

struct CoreRecord {
  uint64_t element_reads;   // through read-only element accessors, and by tensor operations
  uint64_t element_writes;  // through writable element accessors: they hand out references, so reads count here too
  uint64_t stream_reads;
  uint64_t stream_writes;
  uint64_t tcm_reads;       // bursts tensor_to_tcm
  uint64_t tcm_writes;      // bursts tcm_to_tensor
  uint64_t tcm_bytes_read;
  uint64_t tcm_bytes_written;
  uint64_t tcm_peak;        // bytes of the pool, those of open streams included
  uint64_t tcm_leaked;
  uint64_t stack_bytes;
  int32_t status;
  int32_t dst_taken;
};

struct Event {
  int32_t kind;
  int32_t core;
  int32_t tensor;
  int32_t frames;
  uint64_t site;
  uint64_t pcs[kMaxFrames];
  int64_t count;
  int64_t repeats;
  int64_t a, b, c, d;
  char text[kTextBytes];
};

// The head of a print; its text follows, then its values.
struct PrintRecord {
  int32_t core;
  int32_t bytes;   // of both
  uint64_t site;
  int32_t text;    // bytes of the text
  int32_t values;
};

// A number that was printed: where in the text it stands, and its bits as an int64, a uint64 or a double.
struct PrintedValue {
  int32_t begin;
  int32_t end;
  int32_t kind;    // 'i', 'u' or 'd'
  int32_t bits;    // 32 or 64, as the format says; of a double always 64
  uint64_t payload;
};

// What moves_used counts of a call that is traced.
enum MoveKind : int32_t {
  kMalloc = 1,        // count: bytes
  kFree = 2,
  kTensorToTcm = 3,   // first, count: elements of the tensor; byte: where in the block
  kTcmToTensor = 4,
  kElementsRead = 5,  // an accessor of elements is opened, or a stream; its elements are not listed
  kElementsWritten = 6,
  kStreamRead = 7,
  kStreamWritten = 8,
  kStreamEnded = 9,    // count: elements
};

struct Move {
  int32_t kind;
  int32_t core;
  int32_t tensor;
  int32_t block;  // of the core, the first is 0; -1 where there is none
  int64_t first;
  int64_t count;
  int64_t byte;
  uint64_t site;
  int32_t item;    // bytes of an element of the tensor
  int32_t serial;  // of the tensor
};

struct Call {
  int64_t size;  // of this structure
  int32_t op;
  int32_t cores;
  int32_t multicore;
  int32_t threads;
  int32_t arguments;
  int32_t canary;      // the byte that unwritten memory is filled with
  int32_t trap;        // whether crashes are caught: only in a process of the call's own
  int32_t kernel;      // its number in the compute library, as op is in the shape library
  int64_t timeout_ms;
  int64_t memory;      // bytes that the call may have beyond what its process has; 0: no limit
  int64_t stack_limit; // bytes that are judged; 0: none
  int32_t at_once;     // of arrays whose shapes are new: whether a block is taken away by its tcm_free, and every copy
                       // to a tensor is looked at; else it is taken away by what the core does next
  int32_t guard;       // Guard: of a call that is made once more to see accesses which its first one cannot see
  int32_t traced;      // whether moves are listed
  int32_t unused;
  int32_t order[kMaxCores];
  Argument args[kMaxArguments];
  // From here on: results.
  TensorRecord out;       // what the shape function says
  TensorRecord returned;  // what the kernel returned, where it did not take the destination tensor
  int64_t shadow;         // where the bytes are that say which cores wrote an element
  int64_t end;            // how much of the memory is used
  uint64_t base;          // where the library is loaded: a site is an address less this
  int64_t unwritten;      // elements of the output
  int64_t overlapping;
  int32_t by_reference;   // elements of the output were handed out by reference: what wrote them is not known exactly
  int32_t stage;          // 1 shape function, 2 kernel, 3 done
  int32_t events_used;
  int32_t events_dropped;
  uint64_t output_site;   // where the output tensor was made or taken
  int64_t print_bytes;    // ever printed
  int32_t prints_used;
  int32_t went_on;     // a core did something after a tcm_free: only a call with at_once tells all of it
  int64_t forks;       // by the kernel, and by the processes that it has made
  int64_t moves_used;  // of a traced call, those beyond kMaxMoves included
  int32_t output_serial;  // of the tensor that was returned; 0 where the destination tensor was taken
  int32_t unused_too;
  CoreRecord core[kMaxCores];
  Event events[kMaxEvents];
  char prints[kPrintBytes];
  Move moves[kMaxMoves];
};

}  // namespace nkt
