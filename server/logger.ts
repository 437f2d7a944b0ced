import { type DestinationStream, type Logger, pino } from 'pino'
import { redactApiKeys } from '../catalog/redact.ts'

type LoggerOptions = {
  /** Standard error when absent. */
  destination?: DestinationStream
  /** Members that each line gets. */
  mixin?: () => object
}

/** Returns a logger of JSON lines. No line of it holds an API key. */
export const createLogger = (
  level: string,
  { destination = pino.destination({ fd: 2, sync: false }), mixin }: LoggerOptions = {},
): Logger =>
  pino({ level, base: null, hooks: { streamWrite: redactApiKeys }, ...(mixin ? { mixin } : {}) }, destination)
