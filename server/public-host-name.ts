import { isIP } from 'node:net'

/**
 * Whether a host is a name of the public internet, by its form. Numbers and names of private networks are
 * no place for files that others fetch.
 */
export const isPublicHostName = (host: string): boolean =>
  isIP(host.replace(/^\[|\]$/g, '')) === 0 &&
  /\.[a-z][a-z0-9-]+\.?$/.test(host) &&
  !/\.(local|localhost|internal|localdomain|home|lan|arpa)\.?$/.test(host)
