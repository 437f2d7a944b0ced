import { type DestinationStream, type Logger, pino } from 'pino'
import { redactApiKeys } from '../catalog/redact.ts'
import { createLogOutput } from './log-output.ts'

const STANDARD_ERROR = 2

type LoggerOptions = {
  /** Standard error when absent. */
  destination?: DestinationStream
  /** Members that each line gets. */
  mixin?: () => object
}

/** Returns a logger of JSON lines. No line of it holds an API key. */
export const createLogger = (
  level: string,
  { destination = createLogOutput(STANDARD_ERROR), mixin }: LoggerOptions = {},
): Logger =>
  pino({ level, base: null, hooks: { streamWrite: redactApiKeys }, ...(mixin ? { mixin } : {}) }, destination)
