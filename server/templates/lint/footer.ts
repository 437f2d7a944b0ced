import { fine, type Finding, found, type Rule, type Subject } from './rule.ts'
import { excess, hasEmoji, hasNewline, isBlank, oneLine, suggest, withoutEmoji } from './text.ts'

const LONGEST_FOOTER = 60

/** Looks at the footer's text, where there may be one and there is. */
const onText =
  (find: (text: string) => Finding[]) =>
  ({ draft, isCode }: Subject): Finding[] => {
    const text = isCode || draft.carousel ? undefined : draft.footer?.text
    return text === undefined || isBlank(text) ? fine : find(text)
  }

const footer = (text: string) => ({ set: { footer: { text } } })

export const footerRules: readonly Rule[] = [
  {
    id: 'footer.text_required',
    severity: 'error',
    about: 'A footer has a text, but for `AUTHENTICATION`.',
    find: ({ draft, isCode }) =>
      !isCode && !draft.carousel && draft.footer && isBlank(draft.footer.text)
        ? found('footer.text', 'The footer has no text.', 'Write footer.text, or leave out the footer.')
        : fine,
    breaks: { ...footer(''), at: 'footer.text' },
    passes: footer('Thank you'),
  },
  {
    id: 'footer.length',
    severity: 'error',
    about: `At most ${LONGEST_FOOTER} characters.`,
    find: onText((text) => {
      const over = excess(text, LONGEST_FOOTER)
      return over === 0
        ? fine
        : found(
            'footer.text',
            `The footer has ${LONGEST_FOOTER + over} characters; the provider takes ${LONGEST_FOOTER}.`,
            `Shorten it by ${over}.`,
          )
    }),
    breaks: { ...footer('x'.repeat(61)), at: 'footer.text' },
    passes: footer('字'.repeat(60)),
  },
  {
    id: 'footer.variables',
    severity: 'error',
    about: 'No variables.',
    find: onText((text) =>
      text.includes('{{')
        ? found(
            'footer.text',
            'The footer holds a variable.',
            suggest(
              oneLine(text.replaceAll(/\{\{[^{}]*\}\}/g, '').replaceAll('{{', '')),
              'Write words for it, or move it into the body.',
            ),
          )
        : fine,
    ),
    breaks: { ...footer('Thank you, {{1}}'), at: 'footer.text' },
    passes: footer('Thank you {friend}'),
  },
  {
    id: 'footer.newline',
    severity: 'error',
    about: 'No line breaks.',
    find: onText((text) =>
      hasNewline(text)
        ? found('footer.text', 'The footer has a line break.', suggest(oneLine(text), 'Put it on one line.'))
        : fine,
    ),
    breaks: { ...footer('Thank\nyou'), at: 'footer.text' },
    passes: footer('Thank you'),
  },
  {
    id: 'footer.emoji',
    severity: 'error',
    about: 'No emoji.',
    find: onText((text) =>
      hasEmoji(text)
        ? found(
            'footer.text',
            'The footer holds an emoji.',
            suggest(withoutEmoji(text), 'Write words instead.'),
          )
        : fine,
    ),
    breaks: { ...footer('Thank you ☕'), at: 'footer.text' },
    passes: footer('Demo Coffee™ since 1999'),
  },
]
