import { Box, render, Text, useApp, useInput, usePaste } from 'ink'
import { createElement as h, type ReactNode, useRef, useState } from 'react'
import type { Io } from './io.ts'

const CTRL_D = '\u0004'
const CTRL_U = '\u0015'
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
  const buffer = useRef('')
  const [, redraw] = useState('')
  const set = (value: string): void => redraw((buffer.current = value))
  const submit = (): void => {
    onAnswer(buffer.current)
    exit()
  }
  // A terminal may deliver several keys at once, Enter among them.
  const type = (keys: string): void => {
    for (const key of keys) {
      if (key === '\r' || key === '\n') return submit()
      if (key === CTRL_D && buffer.current === '') return exit()
      if (key === CTRL_U) set('')
      else if (!/\p{Cc}/u.test(key)) set(buffer.current + key)
    }
  }
  useInput((input, key) => {
    if (key.return) submit()
    else if (key.backspace || key.delete) set([...buffer.current].slice(0, -1).join(''))
    else if (key.ctrl) type({ d: CTRL_D, u: CTRL_U }[input] ?? '')
    else if (!key.meta && !key.escape) type(input)
  })
  usePaste((pasted) => type(pasted.trim()))
  return h(Box, null, h(Text, null, `${text} ${hidden ? '*'.repeat(buffer.current.length) : buffer.current}`))
}

/**
 * Prompts on the terminal. Undefined after Ctrl-C, and after Ctrl-D while nothing is typed. The prompt is drawn on
 * stderr: stdout is for the command's output.
 */
export const promptUser = async (
  io: Io,
  text: string,
  { hidden = false } = {},
): Promise<string | undefined> => {
  let answered: string | undefined
  const app = render(
    h(Question, {
      text,
      hidden,
      onAnswer: (answer) => {
        answered = answer
      },
    }),
    // A terminal is what it is, also where CI is set.
    { stdin: io.stdin, stdout: io.stderr, patchConsole: false, interactive: true },
  )
  await app.waitUntilExit()
  app.cleanup()
  return answered
}
