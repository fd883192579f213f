// Which elements of the output are written, and by which cores.
//
// While bursts of TCM alone write it, a list of their extents says so: neither is a byte of each element kept then, nor
// is the output filled first with what shows that nobody has written it. Whatever needs to know of single elements lays
// the list open.
#pragma once

#include <stdint.h>

#include <cstddef>

namespace nkt {

struct Extent {
  size_t begin;
  size_t end;
  uint8_t core;  // its bit
};

class Written {
 public:
  // Of an output of so many elements, `item` bytes each, whose `data` and `shadow` hold anything as yet.
  // `listed`: whether a list will do; not where cores run side by side.
  void begin(char* data, uint8_t* shadow, size_t numel, size_t item, int canary, bool listed);

  // Says that a core (its bit) has written elements by a burst. False where the list cannot say so: it is laid open.
  bool add(size_t begin, size_t count, uint8_t core) {
    if (!listed_) return false;
    const size_t end = begin + count;
    // Mostly a burst goes on where the one before it ended.
    const bool goes_on = used_ && extents_[last_].end == begin && extents_[last_].core == core;
    if (goes_on && (last_ + 1 == used_ || end <= extents_[last_ + 1].begin)) {
      extents_[last_].end = end;
      return true;
    }
    return count == 0 || insert(begin, end, core);
  }

  // From here on the shadow has a byte for each element, and what has not been written is filled with the canary.
  void lay_open();
  // All of it is about to be written otherwise: neither filled nor listed any more.
  void give_up() { listed_ = false; }
  bool listed() const { return listed_; }
  // The elements that the list does not have.
  size_t missing() const;

 private:
  bool insert(size_t begin, size_t end, uint8_t core);

  static constexpr int kExtents = 256;
  char* data_;
  uint8_t* shadow_;
  size_t numel_;
  size_t item_;
  int canary_;
  bool listed_;
  int used_;
  int last_;  // the extent that has grown last
  Extent extents_[kExtents];  // in order, apart from each other or of different cores
};

}  // namespace nkt
