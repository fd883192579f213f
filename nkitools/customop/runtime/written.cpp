// Which elements of the output are written, while bursts alone write it.
#include "written.h"

#include <string.h>

namespace nkt {

void Written::begin(char* data, uint8_t* shadow, size_t numel, size_t item, int canary, bool listed) {
  data_ = data;
  shadow_ = shadow;
  numel_ = numel;
  item_ = item;
  canary_ = canary;
  used_ = last_ = 0;
  listed_ = true;
  if (!listed) lay_open();
}

bool Written::insert(size_t begin, size_t end, uint8_t core) {
  int at = used_;  // of the first extent behind this one
  while (at > 0 && extents_[at - 1].begin >= end) at--;
  const bool apart = at == 0 || extents_[at - 1].end <= begin;
  if (!apart || used_ == kExtents) {
    lay_open();
    return false;
  }
  memmove(extents_ + at + 1, extents_ + at, static_cast<size_t>(used_ - at) * sizeof(Extent));
  extents_[at] = Extent{begin, end, core};
  last_ = at;
  used_++;
  return true;
}

void Written::lay_open() {
  if (!listed_) return;
  listed_ = false;
  size_t done = 0;
  for (int i = 0; i <= used_; i++) {
    const Extent next = i < used_ ? extents_[i] : Extent{numel_, numel_, 0};
    memset(data_ + done * item_, canary_, (next.begin - done) * item_);
    memset(shadow_ + done, 0, next.begin - done);
    memset(shadow_ + next.begin, next.core, next.end - next.begin);
    done = next.end;
  }
}

size_t Written::missing() const {
  size_t missing = numel_;
  for (int i = 0; i < used_; i++) missing -= extents_[i].end - extents_[i].begin;
  return missing;
}

}  // namespace nkt
