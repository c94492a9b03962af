/* CRC-32C: the polynomial of Castagnoli et al. (IEEE Transactions on Communications 41, 1993),
 * reflected 0x82F63B78; as in RFC 3720, appendix B.4.  Half a byte at a time, so that the table can
 * be read here. */
#include "view/view_internal.h"

static const uint32_t of_nibble[16] = { 0x00000000, 0x105EC76F, 0x20BD8EDE, 0x30E349B1,
                                        0x417B1DBC, 0x5125DAD3, 0x61C69362, 0x7198540D,
                                        0x82F63B78, 0x92A8FC17, 0xA24BB5A6, 0xB21572C9,
                                        0xC38D26C4, 0xD3D3E1AB, 0xE330A81A, 0xF36E6F75 };

uint32_t fac_crc32c(const void *data, size_t bytes) {
    const uint8_t *p = data;
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= p[i];
        crc = crc >> 4 ^ of_nibble[crc & 15];
        crc = crc >> 4 ^ of_nibble[crc & 15];
    }
    return ~crc;
}

/* So that the checksum of data that holds checksums is no accident of theirs. */
uint32_t fac_crc32c_masked(const void *data, size_t bytes) {
    uint32_t crc = fac_crc32c(data, bytes);
    return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}
