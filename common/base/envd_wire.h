/* What both ends of the wire to envd must agree on, once: its port, and the protocol version that
 * SDKs are told. */
#ifndef BASE_ENVD_WIRE_H
#define BASE_ENVD_WIRE_H

#define ENVD_PORT 49983
#define ENVD_PORT_TEXT "49983"
#define ENVD_VERSION "0.6.4" /* switches features of the SDKs on: report no more than works */

#endif
