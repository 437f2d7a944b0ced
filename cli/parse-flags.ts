import { parseArgs, type ParseArgsConfig } from 'node:util'
import { usageError } from './error.ts'

type Values<T extends ParseArgsConfig['options']> = ReturnType<
  typeof parseArgs<{ args: string[]; options: NonNullable<T> }>
>['values']

/** Parses the flags of a command that takes no other words. Throws a usage error for anything else. */
export const parseFlags = <T extends NonNullable<ParseArgsConfig['options']>>(
  argv: string[],
  options: T,
): Values<T> => {
  try {
    return parseArgs({ args: argv, options }).values
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (!code?.startsWith('ERR_PARSE_ARGS')) throw error
    throw usageError(`${message.split('. ')[0]!}.`.replace('..', '.'))
  }
}
