"""Two-dimensional convolution, in the legacy NKI dialect.

A convolution is a sum of matrix products, one for each tap of the filter: a filter's numbers for that tap, times the
image shifted by that tap. The sum stays in PSUM until it is complete. Channels are contracted over, so they lie on the
partitions; a moving tile is some rows of some columns of the image, read through a shifted index, never copied.
"""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl

BLOCK_TILES = 8  # PSUM tiles of output that one load of image rows serves


def _tiles(size, tile):
    """How many tiles a size takes."""
    return (size + tile - 1) // tile


def _load_filters(filters):
    """All filters in SBUF as [in channels, tap, out channels]; channels beyond the last are zeros."""
    out_channels, in_channels, filter_height, filter_width = filters.shape
    pmax = nl.tile_size.pmax
    taps = filter_height * filter_width
    in_tiles = _tiles(in_channels, pmax)
    stationary = nl.ndarray(
        (nl.par_dim(pmax), _tiles(out_channels, pmax) * in_tiles * taps, pmax), dtype=filters.dtype, buffer=nl.sbuf
    )
    o, i, y, x = nl.mgrid[0:pmax, 0:pmax, 0:filter_height, 0:filter_width]
    partition, free = nl.arange(pmax)[:, None], nl.arange(pmax)[None, :]
    for o_tile in nl.affine_range(_tiles(out_channels, pmax)):
        for i_tile in nl.affine_range(in_tiles):
            loaded = nl.zeros((nl.par_dim(pmax), pmax, filter_height, filter_width), filters.dtype, buffer=nl.sbuf)
            at_out, at_in = o_tile * pmax + o, i_tile * pmax + i
            inside = (at_out < out_channels) & (at_in < in_channels)
            loaded[o, i, y, x] = nl.load(filters[at_out, at_in, y, x], mask=inside)
            for row in nl.affine_range(filter_height):
                for column in nl.affine_range(filter_width):
                    tap = ((o_tile * in_tiles + i_tile) * filter_height + row) * filter_width + column
                    turned = nisa.nc_transpose(loaded[partition, free, row, column])
                    stationary[partition, tap, free] = nl.copy(turned, dtype=filters.dtype)
    return stationary


@nki.jit
def conv2d(images, filters):
    """Convolution without padding, stride 1, of any sizes, as float32.

    ``images`` [batch, in channels, height, width] and ``filters`` [out channels, in channels, filter height, filter
    width] give [batch, out channels, height - filter height + 1, width - filter width + 1].
    """
    batch, in_channels, height, width = images.shape
    out_channels, filter_channels, filter_height, filter_width = filters.shape
    assert filter_channels == in_channels, "images and filters must have one number of input channels"
    assert height >= filter_height, "a filter must fit into an image"
    assert width >= filter_width, "a filter must fit into an image"
    out_height, out_width = height - filter_height + 1, width - filter_width + 1
    result = nl.ndarray((batch, out_channels, out_height, out_width), dtype=nl.float32, buffer=nl.shared_hbm)

    pmax, fmax = nl.tile_size.pmax, nl.tile_size.gemm_moving_fmax
    tile_width = min(out_width, fmax)
    tile_height = min(out_height, fmax // tile_width)
    block_tiles = min(BLOCK_TILES, _tiles(out_height, tile_height))
    block_height = block_tiles * tile_height
    in_tiles = _tiles(in_channels, pmax)
    image_height, image_width = block_height + filter_height - 1, tile_width + filter_width - 1

    stationary = _load_filters(filters)
    partition, out_channel = nl.arange(pmax)[:, None], nl.arange(pmax)[None, :]
    channel, image_row, image_column = nl.mgrid[0:pmax, 0:image_height, 0:image_width]
    p, y, x = nl.mgrid[0:pmax, 0:tile_height, 0:tile_width]
    for b in nl.affine_range(batch):
        for block in nl.affine_range(_tiles(out_height, block_height)):
            for stripe in nl.affine_range(_tiles(out_width, tile_width)):
                image = nl.zeros(
                    (nl.par_dim(pmax), in_tiles, image_height, image_width), dtype=images.dtype, buffer=nl.sbuf
                )
                at_row, at_column = block * block_height + image_row, stripe * tile_width + image_column
                for i_tile in nl.affine_range(in_tiles):
                    at_channel = i_tile * pmax + channel
                    image[channel, i_tile, image_row, image_column] = nl.load(
                        images[b, at_channel, at_row, at_column],
                        mask=(at_channel < in_channels) & (at_row < height) & (at_column < width),
                    )
                for o_tile in nl.affine_range(_tiles(out_channels, pmax)):
                    for t in nl.affine_range(block_tiles):
                        total = nl.zeros((nl.par_dim(pmax), tile_height, tile_width), dtype=nl.float32, buffer=nl.psum)
                        for i_tile in nl.affine_range(in_tiles):
                            for row in nl.affine_range(filter_height):
                                for column in nl.affine_range(filter_width):
                                    tap = ((o_tile * in_tiles + i_tile) * filter_height + row) * filter_width + column
                                    total[p, y, x] += nisa.nc_matmul(
                                        stationary[partition, tap, out_channel],
                                        image[p, i_tile, t * tile_height + row + y, column + x],
                                    )
                        at_out = o_tile * pmax + p
                        to_row, to_column = block * block_height + t * tile_height + y, stripe * tile_width + x
                        nl.store(
                            result[b, at_out, to_row, to_column],
                            total[p, y, x],
                            mask=(at_out < out_channels) & (to_row < out_height) & (to_column < out_width),
                        )
    return result
