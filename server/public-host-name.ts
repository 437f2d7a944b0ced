import { isIP } from 'node:net'

/**
 * Whether a host has the form of a public host name. IP addresses and names of private networks are rejected:
 * others could not fetch files from there.
 */
export const isPublicHostName = (host: string): boolean =>
  isIP(host.replace(/^\[|\]$/g, '')) === 0 &&
  /\.[a-z][a-z0-9-]+\.?$/.test(host) &&
  !/\.(local|localhost|internal|localdomain|home|lan|arpa)\.?$/.test(host)
