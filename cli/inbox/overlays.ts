import type { Key } from 'ink'
import { type Inbox, notify, reportFailure } from './data.ts'
import type { Choice, Pager, Prompt, TemplateForm } from './state.ts'

// Prompts and pagers. Whatever lies over the screen is `overlay` of the state: leaving it shows the screen as it was.

/** A key as it comes from the terminal. */
export type Pressed = { readonly input: string; readonly key: Key }

type Asked = Pick<Prompt, 'label' | 'submit' | 'cancel'> & Partial<Pick<Prompt, 'text' | 'choices'>>

/** Opens a prompt; `text` is what stands in it at first. */
export const ask = (inbox: Inbox, asked: Asked): Prompt => {
  const prompt: Prompt = { kind: 'prompt', text: '', at: 0, choices: [], ...asked }
  inbox.state.overlay = prompt
  inbox.changed()
  return prompt
}

/** Closes a prompt without an answer. */
const leavePrompt = (inbox: Inbox, prompt: Prompt): void => {
  inbox.state.overlay = undefined
  prompt.cancel?.(prompt.text)
  inbox.changed()
}

/**
 * Opens a prompt at once, so that the next keys are not for the screen below, and reads its choices, a form in its
 * place, or a sentence why there is none. Nothing comes of what was left meanwhile.
 */
export const askAfter = async (
  inbox: Inbox,
  asked: Asked,
  read: () => Promise<readonly Choice[] | TemplateForm | string>,
): Promise<void> => {
  const prompt = ask(inbox, { ...asked, choices: undefined })
  try {
    const answer = await read()
    if (inbox.state.overlay !== prompt) return
    if (typeof answer === 'string') {
      leavePrompt(inbox, prompt)
      return notify(inbox, answer)
    }
    if ('kind' in answer) inbox.state.overlay = answer
    else prompt.choices = answer
    inbox.changed()
  } catch (error) {
    if (inbox.state.overlay === prompt) leavePrompt(inbox, prompt)
    reportFailure(inbox, error)
  }
}

/** The choices whose label has what was typed, ignoring case. */
export const matchChoices = ({ choices = [], text }: Prompt): readonly Choice[] =>
  choices.filter(({ label }) => label.toLowerCase().includes(text.trim().toLowerCase()))

export const insertInPrompt = (prompt: Prompt, text: string): void =>
  void Object.assign(prompt, { text: prompt.text + text, at: 0 })

export const pressInPrompt = (inbox: Inbox, prompt: Prompt, { input, key }: Pressed): void => {
  const choices = matchChoices(prompt)
  if (key.escape) leavePrompt(inbox, prompt)
  else if (key.return) {
    if (!prompt.choices) return
    inbox.state.overlay = undefined
    const choice = choices[prompt.at]
    if (choice) choice.run()
    else prompt.submit?.(prompt.text)
  } else if (key.downArrow || key.tab) prompt.at = Math.max(0, Math.min(choices.length - 1, prompt.at + 1))
  else if (key.upArrow) prompt.at = Math.max(0, prompt.at - 1)
  else if (key.backspace || key.delete)
    Object.assign(prompt, { text: [...prompt.text].slice(0, -1).join(''), at: 0 })
  else if (!key.ctrl && !key.meta && input !== '') insertInPrompt(prompt, input)
  inbox.changed()
}

export const openPager = (inbox: Inbox, lines: readonly string[], title?: string): Pager => {
  const pager: Pager = { kind: 'pager', title, lines, scrolled: 0 }
  inbox.state.overlay = pager
  inbox.changed()
  return pager
}
