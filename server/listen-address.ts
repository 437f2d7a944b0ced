import { z } from 'zod'

/** `ADDRESS:PORT`, an IPv6 address in brackets, or the port alone. */
export const ListenAddress = z
  .string()
  .regex(/^(?:(?:\[[0-9a-f:.%]+\]|[\w.-]+):)?\d{1,5}$/i, 'must be ADDRESS:PORT, [IPV6]:PORT or PORT')
  .transform((text) => {
    const [, host, port] = /^(?:(.*):)?(\d+)$/.exec(text)!
    return { host: host?.replace(/^\[|\]$/g, ''), port: Number(port) }
  })
  .refine(({ port }) => port <= 65_535, 'has a port above 65535')
