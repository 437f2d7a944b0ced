import { type DestinationStream, type Logger, pino } from 'pino'
import { redactApiKeys } from '../catalog/redact.ts'

/** Returns a logger of JSON lines, on stderr unless told otherwise. No line of it holds an API key. */
export const createLogger = (
  level: string,
  destination: DestinationStream = pino.destination({ fd: 2, sync: false }),
): Logger => pino({ level, base: null, hooks: { streamWrite: redactApiKeys } }, destination)
