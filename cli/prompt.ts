import { Box, render, Text, useApp, useInput, usePaste } from 'ink'
import { createElement as h, type ReactNode, useRef, useState } from 'react'
import type { Io } from './io.ts'

const Question = ({
  text,
  hidden,
  onAnswer,
}: {
  text: string
  hidden: boolean
  onAnswer: (answer: string) => void
}): ReactNode => {
  const { exit } = useApp()
  const typed = useRef('')
  const [, redraw] = useState('')
  const set = (value: string): void => redraw((typed.current = value))
  const submit = (): void => {
    onAnswer(typed.current)
    exit()
  }
  // A terminal may hand over several keys at once, Enter among them, so the end is looked for inside the
  // text too.
  const take = (input: string): void => {
    const [line = '', ...rest] = input.split(/[\r\n]/)
    set(typed.current + line)
    if (rest.length > 0) submit()
  }
  useInput((input, key) => {
    if (key.return) submit()
    else if (key.backspace || key.delete) set([...typed.current].slice(0, -1).join(''))
    else if (key.ctrl && input === 'u') set('')
    else if (!key.ctrl && !key.meta && !key.escape) take(input)
  })
  usePaste((pasted) => take(pasted.trim()))
  return h(Box, null, h(Text, null, `${text} ${hidden ? '*'.repeat(typed.current.length) : typed.current}`))
}

/**
 * Asks a person on the terminal; undefined when they leave with Ctrl-C. Drawn on stderr, so that stdout
 * stays the answer's.
 */
export const ask = async (io: Io, text: string, { hidden = false } = {}): Promise<string | undefined> => {
  let given: string | undefined
  const app = render(
    h(Question, {
      text,
      hidden,
      onAnswer: (answer) => {
        given = answer
      },
    }),
    { stdin: io.stdin, stdout: io.stderr, patchConsole: false },
  )
  await app.waitUntilExit()
  app.cleanup()
  return given
}
